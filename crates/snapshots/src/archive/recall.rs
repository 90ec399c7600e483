//! From a listing and layers back to members, in two threads: one reads,
//! unpacks and checks, the other does with the members what is wanted.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::check::Sink;
use super::damage::Damage;
use super::gather::OVERHEAD;
use super::layer::Layer;
use super::listing::ListingReader;
use crate::{Cancel, Entry, Kind, LimitKind, Limits, Manifest, Part, Place, SnapshotError};
use hutch_pax::{Body, Member, Reader};

/// Bytes of content in one batch, and batches in flight.
const BATCH: usize = 1 << 20;
const IN_FLIGHT: usize = 3;
/// Members in one batch.
const MEMBERS: usize = 64;

/// What is to be done, in order.
enum Step {
    Begin(Member),
    Data(Vec<u8>),
    End,
}

/// What to read back, and how far to trust it.
pub(crate) struct Recall<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) limits: &'a Limits,
    pub(crate) cancel: &'a Cancel,
    /// Only contents in this layer are read, and the others taken for read.
    pub(crate) only: Option<u32>,
}

impl Recall<'_> {
    /// Hands every entry of the listing with its content to `sink`, each checked
    /// against its digest. The digests of the parts are checked elsewhere.
    pub(crate) fn run(
        &self,
        layers: Vec<Layer>,
        listing: ListingReader,
        sink: &mut impl Sink,
    ) -> Result<(), SnapshotError> {
        let (to, from) = sync_channel(IN_FLIGHT);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || self.read(layers, listing, to));
            let applied = apply(from, sink);
            let read = reader.join().unwrap_or_else(|_| {
                let reason = std::io::Error::other("the reading thread panicked");
                Err(SnapshotError::io("reading the layers", reason))
            });
            applied?;
            read
        })
    }

    fn damage(&self, which: Part) -> Damage {
        Damage {
            id: self.manifest.id,
            which,
        }
    }

    fn read(
        &self,
        mut layers: Vec<Layer>,
        mut listing: ListingReader,
        to: SyncSender<Vec<Step>>,
    ) -> Result<(), SnapshotError> {
        let damage = self.damage(Part::Listing);
        let limit = self.limits.entries;
        if self.manifest.entries > limit {
            return Err(SnapshotError::limit(LimitKind::Entries, limit));
        }
        let mut out = Out {
            to,
            batch: Vec::new(),
            members: 0,
            bytes: 0,
        };
        let (mut entries, mut unpacked) = (0_u64, 0_u64);
        while let Some(entry) = listing.next()? {
            self.cancel.check()?;
            if entries == 0 && entry != self.manifest.root {
                return Err(damage.is("has a root that is not its manifest's"));
            }
            entries += 1;
            if entries > self.manifest.entries.saturating_add(1) {
                return Err(damage.is("has more entries than its manifest says"));
            }
            let stored = match entry.kind {
                Kind::File { stored, .. } => stored,
                _ => 0,
            };
            unpacked = unpacked.saturating_add(stored).saturating_add(OVERHEAD);
            let limit = self.limits.unpacked_bytes;
            if unpacked > limit {
                return Err(SnapshotError::limit(LimitKind::UnpackedBytes, limit));
            }
            check(&entry, self.limits, damage)?;
            if !self.entry(entry, &mut layers, &mut out)? {
                // Whoever applies it has failed, and says why.
                return Ok(());
            }
        }
        if entries != self.manifest.entries.saturating_add(1) {
            return Err(damage.is("does not have as many entries as its manifest says"));
        }
        listing.finish()?;
        out.flush();
        Ok(())
    }

    /// `false` if nobody wants more.
    fn entry(
        &self,
        entry: Entry,
        layers: &mut [Layer],
        out: &mut Out,
    ) -> Result<bool, SnapshotError> {
        let body = match &entry.kind {
            Kind::Directory => Body::Directory,
            Kind::Symlink { target } => Body::Symlink(target.as_bytes().to_vec()),
            Kind::HardLink { target } => Body::HardLink(target.as_bytes().to_vec()),
            Kind::Fifo => Body::Fifo,
            Kind::Whiteout => Body::CharDevice { major: 0, minor: 0 },
            Kind::File { at, .. } => {
                return match at {
                    Some(at) if self.only.is_some_and(|only| only != at.layer) => Ok(true),
                    Some(at) => self.file(&entry, *at, layers, out),
                    None => Err(self.wrong(&entry, "does not say where the content is")),
                };
            }
        };
        Ok(out.begin(member(&entry, body)) && out.end())
    }

    /// Reads a file's content from the member at that place, of which nothing
    /// but the content is used: the member may stem from another name.
    fn file(
        &self,
        entry: &Entry,
        at: Place,
        layers: &mut [Layer],
        out: &mut Out,
    ) -> Result<bool, SnapshotError> {
        let damage = self.damage(Part::Archive);
        let Kind::File {
            size,
            stored,
            digest,
            ..
        } = &entry.kind
        else {
            return Ok(true);
        };
        let Some(layer) = layers.get_mut(at.layer as usize) else {
            return Err(self.wrong(entry, "names a layer that its manifest does not"));
        };
        let found = layer.seek(at.frame, at.offset);
        if !found.map_err(|error| damage.io(error))? {
            return Err(self.wrong(entry, "names a place outside of the layer"));
        }
        let mut reader = Reader::new(layer, self.limits.member());
        let found = reader.member().map_err(|error| damage.pax(error))?;
        let body = match found.map(|found| found.body) {
            Some(body @ (Body::File { .. } | Body::Sparse { .. })) => body,
            _ => return Err(self.wrong(entry, "names a place where no file begins")),
        };
        let length = match &body {
            Body::File { size } | Body::Sparse { size, .. } => *size,
            _ => 0,
        };
        if length != *size || body.stored() != *stored {
            return Err(self.wrong(entry, "has another length than the layer"));
        }
        if !out.begin(member(entry, body)) {
            return Ok(false);
        }
        let mut hasher = blake3::Hasher::new();
        while reader.left() > 0 {
            self.cancel.check()?;
            let want = usize::try_from(reader.left()).map_or(CHUNK, |left| left.min(CHUNK));
            let mut bytes = vec![0; want];
            let got = reader.data(&mut bytes).map_err(|error| damage.pax(error))?;
            bytes.truncate(got);
            hasher.update(&bytes);
            if !out.data(bytes) {
                return Ok(false);
            }
        }
        if hasher.finalize().to_hex().as_str() != digest {
            let path = entry.path.as_bytes().escape_ascii();
            return Err(damage.is(format!("differs from its listing at \"{path}\"")));
        }
        Ok(out.end())
    }

    fn wrong(&self, entry: &Entry, reason: &str) -> SnapshotError {
        let path = entry.path.as_bytes().escape_ascii();
        self.damage(Part::Listing)
            .is(format!("{reason}: \"{path}\""))
    }
}

fn member(entry: &Entry, body: Body) -> Member {
    Member {
        path: entry.path.as_bytes().to_vec(),
        attributes: entry.attributes,
        xattrs: entry.xattrs.clone(),
        body,
    }
}

/// What the reader of archives sees to, for a line of a listing.
fn check(entry: &Entry, limits: &Limits, damage: Damage) -> Result<(), SnapshotError> {
    let target: &[u8] = match &entry.kind {
        Kind::Symlink { target } | Kind::HardLink { target } => {
            if target.as_bytes().is_empty() {
                return Err(damage.is("has a link without a target"));
            }
            target.as_bytes()
        }
        _ => b"",
    };
    for name in [entry.path.as_bytes(), target] {
        if name.len() as u64 > limits.path_bytes {
            let limit = limits.path_bytes;
            return Err(SnapshotError::limit(LimitKind::PathBytes, limit));
        }
        if name.contains(&0) {
            return Err(damage.is("has a name with a zero byte"));
        }
    }
    let mut metadata = 0;
    for xattr in &entry.xattrs {
        let (name, value) = (xattr.name.as_bytes(), xattr.value.as_bytes());
        if name.is_empty() || name.contains(&0) {
            return Err(damage.is("has an attribute with a bad name"));
        }
        metadata += (name.len() + value.len()) as u64;
    }
    if metadata > limits.entry_bytes {
        let limit = limits.entry_bytes;
        return Err(SnapshotError::limit(LimitKind::EntryBytes, limit));
    }
    if entry.attributes.mode > 0o7777 || entry.attributes.mtime.nanos >= 1_000_000_000 {
        return Err(damage.is("has a mode or a time that no file has"));
    }
    Ok(())
}

/// Bytes read at once.
const CHUNK: usize = 1 << 18;

/// Steps on their way, in batches. The calls say whether anybody wants more.
struct Out {
    to: SyncSender<Vec<Step>>,
    batch: Vec<Step>,
    members: usize,
    bytes: usize,
}

impl Out {
    fn begin(&mut self, member: Member) -> bool {
        self.batch.push(Step::Begin(member));
        true
    }

    fn data(&mut self, bytes: Vec<u8>) -> bool {
        self.bytes += bytes.len();
        self.batch.push(Step::Data(bytes));
        self.bytes < BATCH || self.flush()
    }

    fn end(&mut self) -> bool {
        self.members += 1;
        self.batch.push(Step::End);
        self.members < MEMBERS || self.flush()
    }

    fn flush(&mut self) -> bool {
        (self.members, self.bytes) = (0, 0);
        self.to.send(std::mem::take(&mut self.batch)).is_ok()
    }
}

fn apply(from: Receiver<Vec<Step>>, sink: &mut impl Sink) -> Result<(), SnapshotError> {
    for batch in from {
        for step in batch {
            match step {
                Step::Begin(member) => sink.begin(&member)?,
                Step::Data(bytes) => sink.data(&bytes)?,
                Step::End => sink.end()?,
            }
        }
    }
    Ok(())
}
