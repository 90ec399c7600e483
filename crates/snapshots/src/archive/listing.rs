//! The list of entries: JSON, one entry a line, zstd.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};

use zstd::stream::{read::Decoder, write::Encoder};

use super::check::{has_digest, has_length};
use super::damage::Damage;
use super::hashing::Hashing;
use crate::{Entry, Limits, ListingInfo, SnapshotError, durable};

/// Writes a listing.
pub(crate) struct ListingWriter {
    to: Encoder<'static, Hashing<BufWriter<File>>>,
    length: u64,
}

impl ListingWriter {
    pub(crate) fn new(file: File, level: i32) -> Result<Self, SnapshotError> {
        let mut to = Encoder::new(Hashing::new(BufWriter::new(file)), level).map_err(failed)?;
        to.include_checksum(true).map_err(failed)?;
        Ok(Self { to, length: 0 })
    }

    pub(crate) fn push(&mut self, entry: &Entry) -> Result<(), SnapshotError> {
        let mut line = serde_json::to_vec(entry).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        self.length += line.len() as u64;
        self.to.write_all(&line).map_err(failed)
    }

    /// Makes the file durable.
    pub(crate) fn finish(self) -> Result<ListingInfo, SnapshotError> {
        let (buffer, length, digest) = self.to.finish().map_err(failed)?.finish();
        let file = buffer
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        durable::file(&file).map_err(failed)?;
        Ok(ListingInfo {
            format: FORMAT.to_owned(),
            length,
            digest,
            unpacked_length: self.length,
        })
    }
}

pub(crate) const FORMAT: &str = "jsonl.zst";

fn failed(error: std::io::Error) -> SnapshotError {
    SnapshotError::io("writing the list of entries", error)
}

/// Reads a listing, checking it against what the manifest says of it.
pub(crate) struct ListingReader {
    from: BufReader<Decoder<'static, BufReader<Hashing<File>>>>,
    expected: ListingInfo,
    /// Bytes left of the unpacked length.
    left: u64,
    longest: u64,
    damage: Damage,
    line: Vec<u8>,
}

impl ListingReader {
    pub(crate) fn new(
        file: File,
        expected: ListingInfo,
        limits: &Limits,
        damage: Damage,
    ) -> Result<Self, SnapshotError> {
        has_length(&file, expected.length, damage)?;
        let buffer = BufReader::with_capacity(1 << 18, Hashing::new(file));
        let decoder = Decoder::with_buffer(buffer).map_err(|error| damage.io(error))?;
        Ok(Self {
            from: BufReader::with_capacity(1 << 16, decoder),
            left: expected.unpacked_length,
            expected,
            // As JSON a byte takes at most six; both names and the attributes count.
            longest: 6 * (2 * limits.path_bytes + limits.entry_bytes) + 4096,
            damage,
            line: Vec::new(),
        })
    }

    /// The next entry; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, SnapshotError> {
        let damage = self.damage;
        let most = self.left.min(self.longest);
        self.line.clear();
        let got = (&mut self.from)
            .take(most)
            .read_until(b'\n', &mut self.line)
            .map_err(|error| damage.io(error))?;
        self.left -= got as u64;
        if got == 0 && self.left == 0 {
            return Ok(None);
        }
        if self.line.pop() != Some(b'\n') {
            return Err(damage.is("has a line without an end"));
        }
        serde_json::from_slice(&self.line)
            .map(Some)
            .map_err(|error| damage.is(format!("has a line that is no entry ({error})")))
    }

    /// After the last entry: all of the file was read and is as it was written.
    pub(crate) fn finish(mut self) -> Result<(), SnapshotError> {
        let damage = self.damage;
        let mut rest = [0; 1];
        let got = self
            .from
            .read(&mut rest)
            .map_err(|error| damage.io(error))?;
        if got > 0 || self.left > 0 {
            return Err(damage.is("is not as long as its manifest says"));
        }
        let mut buffer = self.from.into_inner().finish();
        std::io::copy(&mut buffer, &mut std::io::sink()).map_err(|error| damage.io(error))?;
        let (_, _, digest) = buffer.into_inner().finish();
        has_digest(&digest, &self.expected.digest, damage)
    }
}
