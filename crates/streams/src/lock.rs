//! One store per data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::OpenError;

/// The lock's name within the data directory. A file of its own, since
/// SQLite's locks on the database are lost when any descriptor of it closes.
const LOCK_FILE: &str = "hutch.db.lock";

/// Held for as long as the writer lives.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Takes the lock, or says who cannot: a second writer would break the
    /// order that live subscribers rely on.
    pub(crate) fn take(directory: &Path, database: &Path) -> Result<Self, OpenError> {
        let path = directory.join(LOCK_FILE);
        let failed = |source| OpenError::Io {
            path: path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
                path: database.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}
