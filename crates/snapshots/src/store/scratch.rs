//! Directories for what is not finished.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;

use crate::{SnapshotError, SnapshotId, durable};

/// A directory for what is not finished, removed when it is dropped. Its owner
/// holds a lock on it, which dies with the owner, so a sweep can tell what is
/// left over from what is being worked on.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    lock: Option<File>,
}

impl Scratch {
    pub(crate) fn new(tmp: &Path) -> Result<Self, SnapshotError> {
        let failed = |error| SnapshotError::io("beginning to write to the snapshot store", error);
        loop {
            let path = tmp.join(SnapshotId::random().to_string());
            DirBuilder::new()
                .mode(0o700)
                .create(&path)
                .map_err(failed)?;
            let mut scratch = Self { path, lock: None };
            // A sweep may come between making and locking it, and take it away.
            match scratch.locked() {
                Ok(Some(lock)) => {
                    scratch.lock = Some(lock);
                    return Ok(scratch);
                }
                Ok(None) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn locked(&self) -> io::Result<Option<File>> {
        let lock = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            lock => lock?,
        };
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(self.path.exists().then_some(lock))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the directory to its place, which must be free, with all names in
    /// it durable.
    pub(crate) fn publish(mut self, place: &Path) -> Result<(), SnapshotError> {
        let moved = durable::directory(&self.path).and_then(|()| {
            Ok(renameat_with(
                CWD,
                &self.path,
                CWD,
                place,
                RenameFlags::NOREPLACE,
            )?)
        });
        if moved.is_ok() {
            self.path = PathBuf::new();
        }
        moved.map_err(|error| SnapshotError::io(format!("publishing {}", place.display()), error))
    }

    /// Leaves all as it is, as a process that dies would.
    #[cfg(test)]
    pub(crate) fn abandon(mut self) {
        self.path = PathBuf::new();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty()
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            // The next sweep removes it.
            tracing::debug!(path = %self.path.display(), %error, "scratch directory stays");
        }
        // Only now may a sweep look at it.
        self.lock = None;
    }
}

/// Removes all scratch directories whose owner is gone.
pub(crate) fn sweep(tmp: &Path) -> io::Result<()> {
    for entry in fs::read_dir(tmp)? {
        let path = entry?.path();
        let Ok(lock) = File::open(&path) else {
            continue;
        };
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => continue,
            Err(error) => return Err(error.into()),
        }
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
