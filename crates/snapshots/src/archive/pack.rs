//! From a tree to an archive and a listing, in one pass.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::io::Errno;
use zstd::stream::write::Encoder;

use super::hashing::Hashing;
use super::listing::ListingWriter;
use super::pipe::{PipeReader, pipe};
use crate::tree::walk::{Found, Walk};
use crate::{
    ArchiveInfo, Cancel, Entry, Kind, LimitKind, Limits, ListingInfo, Settings, Skipped,
    SnapshotError,
};
use hutch_pax::{Body, PaxError, Segment, Writer};

/// Bytes of a file read at once.
const BUFFER: usize = 1 << 18;

pub(crate) const FORMAT: &str = "tar.zst";

/// What was written.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) root: Entry,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) skipped: Skipped,
    pub(crate) archive: ArchiveInfo,
    pub(crate) listing: ListingInfo,
}

/// Writes all that `walk` finds into `archive` and `listing`, and makes both
/// durable.
pub(crate) fn pack(
    walk: Walk,
    archive: File,
    listing: File,
    settings: &Settings,
    cancel: &Cancel,
) -> Result<Packed, SnapshotError> {
    let listing = ListingWriter::new(listing, settings.level)?;
    let (to, from) = pipe();
    std::thread::scope(|scope| {
        let compressor = scope.spawn(|| compress(from, archive, settings.level));
        let packed = fill(
            walk,
            Counted { to, length: 0 },
            listing,
            &settings.limits,
            cancel,
        );
        let compressed = compressor
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the compressing thread panicked")))
            .map_err(|error| SnapshotError::io("writing the archive", error));
        // When the compressor fails, the pipe breaks: its own reason is the better one.
        let (length, digest) = match (&packed, compressed) {
            (Err(SnapshotError::Io { source, .. }), Err(error))
                if source.kind() == io::ErrorKind::BrokenPipe =>
            {
                return Err(error);
            }
            (Err(_), _) => return packed,
            (Ok(_), compressed) => compressed?,
        };
        packed.map(|mut packed| {
            (packed.archive.length, packed.archive.digest) = (length, digest);
            packed
        })
    })
}

fn compress(mut from: PipeReader, archive: File, level: i32) -> io::Result<(u64, String)> {
    let mut to = Encoder::new(Hashing::new(archive), level)?;
    to.include_checksum(true)?;
    io::copy(&mut from, &mut to)?;
    let (archive, length, digest) = to.finish()?.finish();
    archive.sync_all()?;
    Ok((length, digest))
}

fn fill<W: Write>(
    mut walk: Walk,
    to: Counted<W>,
    mut listing: ListingWriter,
    limits: &Limits,
    cancel: &Cancel,
) -> Result<Packed, SnapshotError> {
    let mut archive = Writer::new(to);
    let (mut root, mut entries, mut bytes) = (None, 0, 0);
    let mut buffer = vec![0; BUFFER];
    while let Some(found) = walk.next()? {
        archive.member(&found.member).map_err(failed)?;
        let written = archive.stream().length;
        if written.saturating_add(found.member.body.stored()) > limits.unpacked_bytes {
            let limit = limits.unpacked_bytes;
            return Err(SnapshotError::limit(LimitKind::UnpackedBytes, limit));
        }
        let digest = content(&found, &mut archive, &mut buffer, cancel)?;
        let Some(entry) = Entry::of(found.member, digest) else {
            continue;
        };
        listing.push(&entry)?;
        if let Kind::File { size, .. } = entry.kind {
            bytes = size.saturating_add(bytes);
        }
        match root {
            None => root = Some(entry),
            Some(_) => entries += 1,
        }
    }
    let mut to = archive.finish().map_err(failed)?;
    to.flush().map_err(|error| failed(error.into()))?;
    Ok(Packed {
        root: root.ok_or_else(|| failed(PaxError::Malformed("has no root")))?,
        entries,
        bytes,
        skipped: walk.skipped(),
        archive: ArchiveInfo {
            format: FORMAT.to_owned(),
            length: 0,
            digest: String::new(),
            unpacked_length: to.length,
        },
        listing: listing.finish()?,
    })
}

/// Copies the content of a file. A file that became shorter is filled up with
/// zeros, one that became longer is cut: the archive has announced its length.
fn content<W: Write>(
    found: &Found,
    archive: &mut Writer<W>,
    buffer: &mut [u8],
    cancel: &Cancel,
) -> Result<blake3::Hash, SnapshotError> {
    let whole = |size| Segment {
        offset: 0,
        length: size,
    };
    let (one, many);
    let segments: &[Segment] = match &found.member.body {
        Body::File { size } => {
            one = [whole(*size)];
            &one
        }
        Body::Sparse { segments, .. } => {
            many = segments;
            many
        }
        _ => &[],
    };
    let mut hasher = blake3::Hasher::new();
    for segment in segments {
        let (mut at, mut left) = (segment.offset, segment.length);
        while left > 0 {
            cancel.check()?;
            let want = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let got = read_at(found, &mut buffer[..want], at)?;
            let bytes = match got {
                0 => {
                    buffer[..want].fill(0);
                    &buffer[..want]
                }
                got => &buffer[..got],
            };
            hasher.update(bytes);
            archive.data(bytes).map_err(failed)?;
            at += bytes.len() as u64;
            left -= bytes.len() as u64;
        }
    }
    Ok(hasher.finalize())
}

fn read_at(found: &Found, buffer: &mut [u8], at: u64) -> Result<usize, SnapshotError> {
    let Some(file) = &found.file else {
        return Ok(0);
    };
    loop {
        match rustix::io::pread(file.as_fd(), &mut *buffer, at) {
            Err(Errno::INTR) => {}
            Err(error) => {
                let path = found.member.path.escape_ascii().to_string();
                return Err(SnapshotError::io(format!("reading {path:?}"), error));
            }
            Ok(got) => return Ok(got),
        }
    }
}

fn failed(error: PaxError) -> SnapshotError {
    match error {
        PaxError::Io(error) => SnapshotError::io("writing the archive", error),
        PaxError::Limit { which, limit } => SnapshotError::limit(which.into(), limit),
        PaxError::Malformed(reason) => {
            SnapshotError::io("writing the archive", io::Error::other(reason))
        }
    }
}

/// Counts what is written.
#[derive(Debug)]
struct Counted<W> {
    to: W,
    length: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
