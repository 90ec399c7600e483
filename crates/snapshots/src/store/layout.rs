//! The directories of a store.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hutch_failpoint::failpoint;
use serde::{Deserialize, Serialize};

use super::scratch::{self, Scratch};
use crate::{SnapshotError, SnapshotId, durable};

const VERSION: u64 = 1;

/// The directories of a store.
#[derive(Debug)]
pub(crate) struct Layout {
    snapshots: PathBuf,
    pub(super) layers: PathBuf,
    pub(super) walks: PathBuf,
    tmp: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Store {
    version: u64,
}

impl Layout {
    /// Opens a store or makes one.
    pub(crate) fn open(dir: &Path) -> Result<Self, SnapshotError> {
        let layout = Self {
            snapshots: dir.join("snapshots"),
            layers: dir.join("layers"),
            walks: dir.join("walks"),
            tmp: dir.join("tmp"),
        };
        let opened = layout.make(dir);
        match opened {
            Ok(()) => Ok(layout),
            Err(Failure::Io(error)) => {
                let action = format!("opening the snapshot store {}", dir.display());
                Err(SnapshotError::io(action, error))
            }
            Err(Failure::Other(error)) => Err(error),
            Err(Failure::Version(found)) => Err(SnapshotError::UnsupportedVersion {
                what: format!("the snapshot store {}", dir.display()),
                found,
                known: VERSION,
            }),
        }
    }

    fn make(&self, dir: &Path) -> Result<(), Failure> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        make(&self.tmp)?;
        let path = dir.join("store.json");
        let found = match version(&path)? {
            Some(found) => found,
            None => {
                self.begin(&path)?;
                VERSION
            }
        };
        if found != VERSION {
            return Err(Failure::Version(found));
        }
        make(&self.snapshots)?;
        make(&self.layers)?;
        make(&self.walks)?;
        Ok(durable::directory(dir)?)
    }

    /// Writes the version into a new store.
    fn begin(&self, path: &Path) -> Result<(), Failure> {
        let snapshots = self.snapshots.exists();
        if snapshots && version(path)?.is_none() {
            let reason = "snapshots without store.json: not a store, or a damaged one";
            return Err(io::Error::other(reason).into());
        }
        let scratch = Scratch::new(&self.tmp)?;
        let temporary = scratch.path().join("store.json");
        let mut file = create(&temporary)?;
        let store = serde_json::to_vec(&Store { version: VERSION });
        file.write_all(&store.map_err(io::Error::from)?)?;
        durable::file(&file)?;
        Ok(fs::rename(&temporary, path)?)
    }

    /// Where a snapshot is kept.
    pub(crate) fn place(&self, id: SnapshotId) -> PathBuf {
        self.snapshots.join(id.to_string())
    }

    /// A directory to make a snapshot in.
    pub(crate) fn scratch(&self) -> Result<Scratch, SnapshotError> {
        Scratch::new(&self.tmp)
    }

    /// Puts a finished snapshot in its place, durably.
    pub(crate) fn publish(&self, scratch: Scratch, id: SnapshotId) -> Result<(), SnapshotError> {
        scratch.publish(&self.place(id))?;
        durable::directory(&self.snapshots)
            .map_err(|error| SnapshotError::io(format!("publishing snapshot {id}"), error))
    }

    /// Removes what dead saves and deletions left behind.
    pub(crate) fn sweep(&self) -> Result<(), SnapshotError> {
        scratch::sweep(&self.tmp)
            .map_err(|error| SnapshotError::io("sweeping the snapshot store", error))?;
        self.sweep_layers()
    }

    pub(crate) fn list(&self) -> Result<Vec<SnapshotId>, SnapshotError> {
        let failed = |error| SnapshotError::io("listing the snapshot store", error);
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.snapshots).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            ids.extend(
                name.to_str()
                    .and_then(|name| name.parse::<SnapshotId>().ok()),
            );
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Moves a snapshot away at once, then removes it.
    pub(crate) fn delete(&self, id: SnapshotId) -> Result<(), SnapshotError> {
        let scratch = self.scratch()?;
        match fs::rename(self.place(id), scratch.path().join("deleted")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SnapshotError::NotFound { id });
            }
            moved => moved.and_then(|()| durable::directory(&self.snapshots)),
        }
        .and_then(|()| Ok(failpoint!("snapshot.doomed")?))
        .map_err(|error| SnapshotError::io(format!("deleting snapshot {id}"), error))?;
        drop(scratch);
        self.sweep_layers()
    }
}

enum Failure {
    Io(io::Error),
    Other(SnapshotError),
    Version(u64),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<SnapshotError> for Failure {
    fn from(error: SnapshotError) -> Self {
        Self::Other(error)
    }
}

/// The version that a store says it has; `None` if it says nothing.
fn version(path: &Path) -> io::Result<Option<u64>> {
    let mut text = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(4096).read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let store: Store = serde_json::from_slice(&text)
        .map_err(|error| io::Error::other(format!("store.json does not parse ({error})")))?;
    Ok(Some(store.version))
}

fn make(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Makes a new file that only its owner can read.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
