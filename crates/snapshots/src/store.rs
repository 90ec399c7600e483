//! The store on a local disk.
//!
//! ```text
//! <dir>/store.json                            {"version": 1}
//! <dir>/layers/<digest>.tar.zst               contents, shared by snapshots
//! <dir>/snapshots/<id>/entries.jsonl.zst      the entries, one a line, and where
//!                                             in which layer their contents are
//! <dir>/snapshots/<id>/manifest.json          lengths and digests of all those
//! <dir>/walks/<id>                            what the next save need not read
//! <dir>/tmp/…                                 what is being written or removed
//! ```
//!
//! A snapshot is made below `tmp`, made durable and read back; then its layer,
//! then the rest is moved to its place: it is there and complete, or not there.
//! A layer goes when no manifest names it any more. Snapshots of version 1 have
//! an `archive.tar.zst` of their own and are restored as ever.

mod layers;
mod layout;
mod read;
mod save;
mod scratch;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use time::OffsetDateTime;

use self::layout::Layout;
use self::read::Stored;
use crate::archive::check::Nowhere;
use crate::archive::unpack::Unpack;
use crate::walked::Walked;
use crate::{Cancel, Entry, Manifest, SaveMeta, Settings, SnapshotError, SnapshotId};

/// Snapshots in a directory of a local disk, each durable before its name is
/// given out. Clones share the store; all calls may run at the same time, from
/// several processes too.
#[derive(Debug, Clone)]
pub struct LocalStore {
    layout: Arc<Layout>,
    settings: Settings,
}

impl LocalStore {
    /// Opens the store in `dir`, which is made (mode 0700) if it is missing,
    /// and removes what a save that died left behind.
    pub fn open(dir: &Path) -> Result<Self, SnapshotError> {
        Self::open_with(dir, Settings::default())
    }

    /// [`open`](Self::open) with other settings.
    pub fn open_with(dir: &Path, settings: Settings) -> Result<Self, SnapshotError> {
        let layout = Layout::open(dir)?;
        layout.sweep()?;
        Ok(Self {
            layout: Arc::new(layout),
            settings,
        })
    }

    /// Saves the tree below `tree`, a directory, and returns the manifest of
    /// the new snapshot with its id. By then the snapshot is durable, was read
    /// back and compared. Entries that change or vanish meanwhile are no error:
    /// such a file is saved with some of its states.
    pub fn save(&self, tree: OwnedFd, meta: SaveMeta) -> Result<Manifest, SnapshotError> {
        save::save(&self.layout, &self.settings, tree.as_fd(), meta)
    }

    /// Unpacks a snapshot into `into`, an empty directory that nobody else
    /// uses, which also gets the owner, mode and time of the saved root. The
    /// snapshot is verified before anything is written. On success all is on
    /// disk; after an error the directory is to be thrown away.
    pub fn restore(&self, id: SnapshotId, into: OwnedFd) -> Result<Manifest, SnapshotError> {
        self.restore_with(id, into, &Cancel::new())
    }

    /// [`restore`](Self::restore) that a caller can end.
    pub fn restore_with(
        &self,
        id: SnapshotId,
        into: OwnedFd,
        cancel: &Cancel,
    ) -> Result<Manifest, SnapshotError> {
        let stored = Stored::open(&self.layout, id)?;
        if let Some(at) = stored.manifest.expires_at
            && OffsetDateTime::now_utc() >= at
        {
            return Err(SnapshotError::Expired { id, at });
        }
        let mut unpack = Unpack::new(into.as_fd(), stored.archive_damage())?;
        stored.check_digests(cancel)?;
        stored.stream(&self.settings.limits, cancel, &mut unpack)?;
        let seen = unpack.finish()?;
        match Walked::made(into.as_fd(), &seen) {
            Ok(walked) => save::remember(&self.layout, id, &walked),
            Err(error) => tracing::debug!(%error, "the next save reads everything"),
        }
        Ok(stored.manifest)
    }

    /// The manifest of a snapshot, expired or not. Reads only that.
    pub fn describe(&self, id: SnapshotId) -> Result<Manifest, SnapshotError> {
        Ok(Stored::open(&self.layout, id)?.manifest)
    }

    /// Calls `each` with every entry of a snapshot, the root first, in the order
    /// of the archive.
    pub fn entries(
        &self,
        id: SnapshotId,
        each: impl FnMut(Entry) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        Stored::open(&self.layout, id)?.entries(&self.settings.limits, each)
    }

    /// Checks a snapshot from end to end without unpacking it.
    pub fn verify(&self, id: SnapshotId) -> Result<Manifest, SnapshotError> {
        let stored = Stored::open(&self.layout, id)?;
        let cancel = Cancel::new();
        stored.check_digests(&cancel)?;
        stored.stream(&self.settings.limits, &cancel, &mut Nowhere)?;
        Ok(stored.manifest)
    }

    /// All snapshots, damaged and expired ones too, ordered by id.
    pub fn list(&self) -> Result<Vec<SnapshotId>, SnapshotError> {
        self.layout.list()
    }

    /// Removes a snapshot. After a crash it is there whole or not at all. A
    /// restore that has begun still ends well.
    pub fn delete(&self, id: SnapshotId) -> Result<(), SnapshotError> {
        self.layout.delete(id)
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
