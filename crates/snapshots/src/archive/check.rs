//! Whether an archive of version 1 holds exactly what its manifest and listing
//! say.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use zstd::stream::read::Decoder;

use super::damage::Damage;
use super::hashing::Hashing;
use super::listing::ListingReader;
use super::pipe::{PipeWriter, pipe};
use crate::{ArchiveInfo, Cancel, Entry, LimitKind, Limits, Manifest, Part, SnapshotError};
use hutch_pax::{Member, Reader};

/// Where the members of an archive go.
pub(crate) trait Sink {
    /// A member begins.
    fn begin(&mut self, member: &Member) -> Result<(), SnapshotError>;
    /// Bytes of its content, in order.
    fn data(&mut self, bytes: &[u8]) -> Result<(), SnapshotError>;
    /// The member is complete and is what the listing says.
    fn end(&mut self) -> Result<(), SnapshotError>;
}

/// Only looks.
pub(crate) struct Nowhere;

impl Sink for Nowhere {
    fn begin(&mut self, _: &Member) -> Result<(), SnapshotError> {
        Ok(())
    }
    fn data(&mut self, _: &[u8]) -> Result<(), SnapshotError> {
        Ok(())
    }
    fn end(&mut self) -> Result<(), SnapshotError> {
        Ok(())
    }
}

/// Checks length and digest of a file, decoding nothing.
pub(crate) fn digest(
    file: &File,
    length: u64,
    digest: &str,
    damage: Damage,
    cancel: &Cancel,
) -> Result<(), SnapshotError> {
    has_length(file, length, damage)?;
    let mut stream = Hashing::new(file);
    let mut buffer = vec![0; 1 << 20];
    while stream.read(&mut buffer).map_err(|error| damage.io(error))? > 0 {
        cancel.check()?;
    }
    has_digest(&stream.finish().2, digest, damage)
}

/// Reads the whole archive beside the listing, each entry compared, and hands
/// it to `sink`.
pub(crate) fn stream(
    archive: File,
    listing: File,
    manifest: &Manifest,
    info: &ArchiveInfo,
    limits: &Limits,
    cancel: &Cancel,
    sink: &mut impl Sink,
) -> Result<(), SnapshotError> {
    let damage = |which| Damage {
        id: manifest.id,
        which,
    };
    let expected = manifest.listing.clone();
    let listing = ListingReader::new(listing, expected, limits, damage(Part::Listing))?;
    let damage = damage(Part::Archive);
    let unpacked = info.unpacked_length;
    for (which, value, limit) in [
        (LimitKind::Entries, manifest.entries, limits.entries),
        (LimitKind::UnpackedBytes, unpacked, limits.unpacked_bytes),
    ] {
        if value > limit {
            return Err(SnapshotError::limit(which, limit));
        }
    }
    has_length(&archive, info.length, damage)?;
    let (to, from) = pipe();
    std::thread::scope(|scope| {
        let decoder = scope.spawn(move || decompress(archive, to));
        let from = Bounded {
            from,
            left: unpacked,
        };
        let compared = compare(from, listing, manifest, limits, cancel, sink);
        let digest = decoder
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the decoding thread panicked")));
        compared?;
        let digest = digest.map_err(|error| damage.io(error))?;
        has_digest(&digest, &info.digest, damage)
    })
}

/// A file has the length that the manifest says.
pub(crate) fn has_length(file: &File, expected: u64, damage: Damage) -> Result<(), SnapshotError> {
    let length = file.metadata().map_err(|error| damage.io(error))?.len();
    if length != expected {
        return Err(damage.is(format!("has {length} bytes instead of {expected}")));
    }
    Ok(())
}

/// A file had the digest that the manifest says.
pub(crate) fn has_digest(
    digest: &str,
    expected: &str,
    damage: Damage,
) -> Result<(), SnapshotError> {
    if digest != expected {
        return Err(damage.is("does not have the digest of its manifest"));
    }
    Ok(())
}

/// Decodes `archive` into the pipe. Returns the digest of the file.
fn decompress(archive: File, mut to: PipeWriter) -> io::Result<String> {
    let buffer = BufReader::with_capacity(1 << 20, Hashing::new(archive));
    let mut decoder = Decoder::with_buffer(buffer)?;
    let copied = io::copy(&mut decoder, &mut to).and_then(|_| to.flush());
    match copied {
        Ok(()) => {
            let (_, _, digest) = decoder.finish().into_inner().finish();
            Ok(digest)
        }
        Err(error) => {
            let copy = match error.raw_os_error() {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::new(error.kind(), error.to_string()),
            };
            to.fail(copy);
            Err(error)
        }
    }
}

fn compare(
    from: impl Read,
    mut listing: ListingReader,
    manifest: &Manifest,
    limits: &Limits,
    cancel: &Cancel,
    sink: &mut impl Sink,
) -> Result<(), SnapshotError> {
    let damage = Damage {
        id: manifest.id,
        which: Part::Archive,
    };
    let mut archive = Reader::new(from, limits.member());
    let mut buffer = vec![0; 1 << 18];
    let mut members = 0_u64;
    while let Some(member) = archive.member().map_err(|error| damage.pax(error))? {
        cancel.check()?;
        sink.begin(&member)?;
        let mut hasher = blake3::Hasher::new();
        loop {
            let got = archive
                .data(&mut buffer)
                .map_err(|error| damage.pax(error))?;
            if got == 0 {
                break;
            }
            cancel.check()?;
            hasher.update(&buffer[..got]);
            sink.data(&buffer[..got])?;
        }
        let entry =
            Entry::of(member, hasher.finalize()).ok_or_else(|| damage.is("has a device node"))?;
        if members == 0 && entry != manifest.root {
            return Err(damage.is("has a root that is not its manifest's"));
        }
        if listing.next()?.as_ref() != Some(&entry) {
            let path = entry.path;
            return Err(damage.is(format!("differs from its listing at {path:?}")));
        }
        sink.end()?;
        members += 1;
    }
    if members != manifest.entries.saturating_add(1) || listing.next()?.is_some() {
        return Err(damage.is("does not have as many entries as its manifest says"));
    }
    let mut rest = archive.into_inner();
    if rest.read(&mut [0]).map_err(|error| damage.io(error))? > 0 {
        return Err(damage.is("goes on after its end"));
    }
    listing.finish()
}

/// Ends after as many bytes as there ought to be.
#[derive(Debug)]
struct Bounded<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.from.read(buffer)?;
        self.left = self.left.checked_sub(got as u64).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "more bytes than the manifest says",
            )
        })?;
        Ok(got)
    }
}
