//! The layers of a store: who needs them, and until when.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::layout::Layout;
use super::read::Stored;
use crate::{SnapshotError, SnapshotId, durable};

const ENDING: &str = ".tar.zst";

/// While this is held, no layer is removed.
#[derive(Debug)]
pub(crate) struct Hold(#[expect(dead_code, reason = "unlocks when it is closed")] File);

impl Layout {
    /// Keeps every layer where it is, for a save that will refer to some.
    pub(crate) fn hold_layers(&self) -> Result<Hold, SnapshotError> {
        let failed = |error: io::Error| SnapshotError::io("locking the layers", error);
        let lock = File::open(&self.layers).map_err(failed)?;
        flock(&lock, FlockOperation::LockShared).map_err(|error| failed(error.into()))?;
        Ok(Hold(lock))
    }

    /// Where a layer is kept. `digest` was checked to be one.
    pub(crate) fn layer(&self, digest: &str) -> PathBuf {
        self.layers.join(format!("{digest}{ENDING}"))
    }

    /// Moves a finished layer to its place, durably. One that is there already
    /// has the same bytes, or should have.
    pub(crate) fn publish_layer(&self, draft: &Path, digest: &str) -> Result<(), SnapshotError> {
        fs::rename(draft, self.layer(digest))
            .and_then(|()| durable::directory(&self.layers))
            .map_err(|error| SnapshotError::io("publishing a layer", error))
    }

    /// Where is kept what the last walk of a snapshot's tree saw.
    pub(crate) fn walk(&self, id: SnapshotId) -> PathBuf {
        self.walks.join(id.to_string())
    }

    /// Keeps what a walk saw for another snapshot of the same tree.
    pub(crate) fn share_walk(&self, before: SnapshotId, id: SnapshotId) {
        if let Err(error) = fs::hard_link(self.walk(before), self.walk(id)) {
            tracing::debug!(%error, "the next save reads everything");
        }
    }

    /// Removes the layers that no manifest refers to, and walks without a
    /// snapshot. Does nothing while a save holds the layers, or if a manifest
    /// cannot be read: a later sweep will.
    pub(crate) fn sweep_layers(&self) -> Result<(), SnapshotError> {
        let failed = |error: io::Error| SnapshotError::io("sweeping the layers", error);
        let lock = File::open(&self.layers).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(()),
            Err(error) => return Err(failed(error.into())),
        }
        let ids: HashSet<_> = self.list()?.into_iter().collect();
        let mut needed = HashSet::new();
        for id in &ids {
            match Stored::open(self, *id) {
                Ok(stored) => {
                    let layers = stored.manifest.layers.into_iter();
                    needed.extend(layers.map(|layer| layer.digest));
                }
                Err(SnapshotError::NotFound { .. }) => {}
                Err(error) => {
                    tracing::debug!(%error, "no layer is removed while a manifest is unreadable");
                    return Ok(());
                }
            }
        }
        remove_unless(&self.layers, |name| {
            name.strip_suffix(ENDING)
                .is_none_or(|digest| needed.contains(digest))
        })
        .and_then(|()| {
            let is_needed = |name: &str| name.parse().is_ok_and(|id| ids.contains(&id));
            remove_unless(&self.walks, is_needed)
        })
        .map_err(failed)
    }
}

fn remove_unless(directory: &Path, is_needed: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(&is_needed) {
            continue;
        }
        match fs::remove_file(entry.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
