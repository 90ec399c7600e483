//! From a tree to a layer and a listing, in one pass. What did not change since
//! the base stays where it is.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::layer::{Cutter, compress, cutter};
use super::listing::ListingWriter;
use crate::known::Base;
use crate::tree::walk::{Found, Walk};
use crate::walked::{Sort, Step, Steps};
use crate::{
    Cancel, Entry, Kind, LayerInfo, LimitKind, ListingInfo, Place, Settings, Skipped,
    SnapshotError, durable,
};
use hutch_pax::{Body, PaxError, Segment, Writer};

/// Bytes of a file read at once.
const BUFFER: usize = 1 << 18;

/// What an entry takes besides its content, for the limit.
pub(crate) const OVERHEAD: u64 = 512;

/// What was written.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) root: Entry,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) skipped: Skipped,
    /// The new layer, unless there was nothing to put into one.
    pub(crate) layer: Option<LayerInfo>,
    pub(crate) listing: ListingInfo,
    pub(crate) steps: Steps,
}

/// Writes what `walk` finds into `listing`, and what `base` does not have into
/// `layer`. Both are durable then. Without layers in the base, the layer gets
/// all entries, not only contents, and is an archive of the whole tree.
pub(crate) fn gather(
    walk: Walk<'_>,
    base: &Base,
    layer: File,
    listing: File,
    settings: &Settings,
    cancel: &Cancel,
) -> Result<Gathered, SnapshotError> {
    let listing = ListingWriter::new(listing, settings.level)?;
    let (to, from) = cutter();
    std::thread::scope(|scope| {
        let compressor = scope.spawn(|| compress(from, &layer, settings.level));
        let gathered = Gather {
            base,
            archive: Writer::new(to),
            listing,
            written: 0,
            buffer: vec![0; BUFFER],
            cancel,
        }
        .all(walk, settings);
        let compressed = compressor
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the compressing thread panicked")))
            .map_err(|error| SnapshotError::io("writing a layer", error));
        // When the compressor fails, the pipe breaks: its own reason is the better one.
        match (gathered, compressed) {
            (Err(SnapshotError::Io { source, .. }), Err(error))
                if source.kind() == io::ErrorKind::BrokenPipe =>
            {
                Err(error)
            }
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
            (Ok(mut gathered), Ok(info)) => {
                gathered.layer = (!info.frames.is_empty()).then_some(info);
                durable::file(&layer)
                    .map_err(|error| SnapshotError::io("writing a layer", error))?;
                Ok(gathered)
            }
        }
    })
}

struct Gather<'a> {
    base: &'a Base,
    archive: Writer<Cutter>,
    listing: ListingWriter,
    /// Members in the layer.
    written: u64,
    buffer: Vec<u8>,
    cancel: &'a Cancel,
}

impl Gather<'_> {
    fn all(mut self, mut walk: Walk<'_>, settings: &Settings) -> Result<Gathered, SnapshotError> {
        let (mut root, mut entries, mut bytes, mut unpacked) = (None, 0, 0, 0_u64);
        let (mut steps, mut inside) = (Steps::default(), 0_usize);
        while let Some(found) = walk.next()? {
            let stored = match found.known {
                Some(Kind::File { stored, .. }) => stored,
                _ => found.member.body.stored(),
            };
            unpacked = unpacked.saturating_add(stored.saturating_add(OVERHEAD));
            if unpacked > settings.limits.unpacked_bytes {
                let limit = settings.limits.unpacked_bytes;
                return Err(SnapshotError::limit(LimitKind::UnpackedBytes, limit));
            }
            let (seen, depth) = (found.seen, found.depth);
            let Some(entry) = self.entry(found)? else {
                continue;
            };
            self.listing.push(&entry)?;
            if let Kind::File { size, .. } = entry.kind {
                bytes = size.saturating_add(bytes);
            }
            let sort = match entry.kind {
                Kind::Directory => Sort::Directory,
                Kind::File { .. } => Sort::File,
                _ => Sort::Other,
            };
            let path = entry.path.as_bytes();
            steps.push(Step {
                sort,
                up: u32::try_from(inside.saturating_sub(depth)).unwrap_or(u32::MAX),
                name: path.rsplit(|byte| *byte == b'/').next().unwrap_or(path),
                seen,
            });
            inside = depth + usize::from(sort == Sort::Directory);
            match root {
                None => root = Some(entry),
                Some(_) => entries += 1,
            }
        }
        if self.written > 0 {
            let mut to = self.archive.finish().map_err(failed)?;
            to.flush().map_err(|error| failed(error.into()))?;
        }
        Ok(Gathered {
            root: root.ok_or_else(|| failed(PaxError::Malformed("has no root")))?,
            entries,
            bytes,
            skipped: walk.skipped(),
            layer: None,
            listing: self.listing.finish()?,
            steps,
        })
    }

    /// The line for what was found, its content written if that is new.
    fn entry(&mut self, mut found: Found) -> Result<Option<Entry>, SnapshotError> {
        let is_file = matches!(found.member.body, Body::File { .. } | Body::Sparse { .. });
        let known = match found.known {
            Some(_) => found.known.take(),
            None if is_file => self.same(&found)?,
            None => None,
        };
        if let Some(kind) = known {
            return Ok(Some(Entry {
                path: found.member.path.into(),
                kind,
                attributes: found.member.attributes,
                xattrs: found.member.xattrs,
            }));
        }
        if !is_file && !self.base.layers.is_empty() {
            return Ok(Entry::of(found.member, blake3::hash(b"")));
        }
        let layer = u32::try_from(self.base.layers.len()).unwrap_or(u32::MAX);
        let stored = found.member.body.stored();
        // Room for the headers of an ordinary member.
        let estimate = stored.saturating_add(4 * OVERHEAD);
        let place = self
            .archive
            .stream_mut()
            .at(estimate)
            .map_err(|error| failed(error.into()))?;
        let (frame, offset) = place;
        self.archive.member(&found.member).map_err(failed)?;
        self.written += 1;
        let digest = content(&found, &mut self.buffer, self.cancel, |bytes| {
            self.archive.data(bytes).map_err(failed)
        })?;
        let mut entry = Entry::of(found.member, digest);
        if let Some(Entry {
            kind: Kind::File { at, .. },
            ..
        }) = &mut entry
        {
            *at = Some(Place {
                layer,
                frame,
                offset,
            });
        }
        Ok(entry)
    }

    /// What the base has of another file with the same content.
    fn same(&mut self, found: &Found) -> Result<Option<Kind>, SnapshotError> {
        // Under a new name, with another mode, or written anew with the same.
        let Body::File { size } = found.member.body else {
            return Ok(None);
        };
        if !self.base.sizes.contains(&size) {
            return Ok(None);
        }
        let digest = content(found, &mut self.buffer, self.cancel, |_| Ok(()))?;
        let key = (digest.to_hex().to_string(), size);
        Ok(self.base.contents.get(&key).map(|at| Kind::File {
            size,
            stored: size,
            digest: key.0.clone(),
            at: Some(*at),
        }))
    }
}

/// Hands on the content of a file. A file that became shorter is filled up with
/// zeros, one that became longer is cut: its length has been announced.
fn content(
    found: &Found,
    buffer: &mut [u8],
    cancel: &Cancel,
    mut each: impl FnMut(&[u8]) -> Result<(), SnapshotError>,
) -> Result<blake3::Hash, SnapshotError> {
    let whole = |size| Segment {
        offset: 0,
        length: size,
    };
    let one;
    let segments: &[Segment] = match &found.member.body {
        Body::File { size } => {
            one = [whole(*size)];
            &one
        }
        Body::Sparse { segments, .. } => segments,
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
            each(bytes)?;
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
        PaxError::Io(error) => SnapshotError::io("writing a layer", error),
        PaxError::Limit { which, limit } => SnapshotError::limit(which.into(), limit),
        PaxError::Malformed(reason) => {
            SnapshotError::io("writing a layer", io::Error::other(reason))
        }
    }
}
