//! The store on a local disk.

use std::os::fd::OwnedFd;
use std::path::Path;

use crate::{Cancel, Manifest, SaveMeta, Settings, SnapshotError, SnapshotId};

/// Snapshots in a directory of a local disk, each durable before its name is
/// given out. Clones share the store; all calls may run at the same time.
#[derive(Debug, Clone)]
pub struct LocalStore {
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
        let _ = dir;
        Ok(Self { settings })
    }

    /// Saves the tree below `tree`, a directory, and returns what was saved,
    /// with the new id. By then the archive is durable, was read back and
    /// compared. Entries that change or vanish meanwhile are no error.
    pub fn save(&self, tree: OwnedFd, meta: SaveMeta) -> Result<Manifest, SnapshotError> {
        let _ = (tree, meta, &self.settings);
        Err(self.missing("save"))
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
        let _ = (id, into, cancel);
        Err(self.missing("restore"))
    }

    /// The manifest of a snapshot, expired or not.
    pub fn describe(&self, id: SnapshotId) -> Result<Manifest, SnapshotError> {
        let _ = id;
        Err(self.missing("describe"))
    }

    /// Checks a snapshot from end to end without unpacking it.
    pub fn verify(&self, id: SnapshotId) -> Result<Manifest, SnapshotError> {
        let _ = id;
        Err(self.missing("verify"))
    }

    /// All snapshots, damaged ones too, in no order.
    pub fn list(&self) -> Result<Vec<SnapshotId>, SnapshotError> {
        Err(self.missing("list"))
    }

    /// Removes a snapshot. It is gone at once or, after a crash, not at all.
    pub fn delete(&self, id: SnapshotId) -> Result<(), SnapshotError> {
        let _ = id;
        Err(self.missing("delete"))
    }

    fn missing(&self, what: &str) -> SnapshotError {
        SnapshotError::io(what, std::io::Error::from(std::io::ErrorKind::Unsupported))
    }
}
