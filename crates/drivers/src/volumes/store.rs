//! What a store of volumes can do.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use hutch_protocol::{BackupId, Generation};
use serde::{Deserialize, Serialize};

use crate::SandboxKey;

/// What a volume says of itself. Written durably beside the content, never
/// inside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeState {
    /// The version of this document: 1.
    pub version: u32,
    /// The sandbox that it belongs to.
    pub sandbox: SandboxKey,
    /// Which content this is; it grows with each new one.
    pub generation: Generation,
    /// The snapshot that the content came from or went to last.
    pub base: Option<BackupId>,
    /// Whether there may be changes since that snapshot.
    pub dirty: bool,
}

impl VolumeState {
    /// The state of an empty volume.
    #[must_use]
    pub fn new(sandbox: SandboxKey, generation: Generation) -> Self {
        Self {
            version: 1,
            sandbox,
            generation,
            base: None,
            dirty: false,
        }
    }
}

/// One sandbox's disk.
#[derive(Debug)]
pub struct Volume {
    /// Its host directory: `workspace/` and the other parts of the writable
    /// tree. What lies below the parts is the sandbox's: hostile names and links.
    pub path: PathBuf,
    /// The same directory, opened.
    pub dir: OwnedFd,
    /// What it says of itself.
    pub state: VolumeState,
}

/// Why a volume call failed.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// There is a volume already.
    #[error("the volume of {0} exists already")]
    Exists(SandboxKey),
    /// There is none.
    #[error("there is no volume of {0}")]
    NotFound(SandboxKey),
    /// The state document is of a newer version, or another sandbox's.
    #[error("the state of the volume of {sandbox} cannot be read: {reason}")]
    State {
        /// The volume's sandbox.
        sandbox: SandboxKey,
        /// What is wrong with it.
        reason: String,
    },
    /// There is content, but its state document is gone or damaged, so nobody
    /// can say what the content is.
    #[error("the volume of {sandbox} has work in it but its state.json {reason}; the work is in {}, nothing was removed; give it up with a start that discards the workspace", path.display())]
    Lost {
        /// The volume's sandbox.
        sandbox: SandboxKey,
        /// Where the content is.
        path: PathBuf,
        /// What is wrong with the document.
        reason: String,
    },
    /// The system refused.
    #[error("volume of {sandbox}: {step}: {cause}")]
    Io {
        /// The volume's sandbox.
        sandbox: SandboxKey,
        /// What was being done.
        step: String,
        /// What the system said.
        cause: io::Error,
    },
}

/// Where volumes live. Every call blocks: callers use a thread that may wait.
pub trait VolumeStore: Send + Sync {
    /// Makes an empty volume with a `workspace/` and the parts of the root. It
    /// has its place only once it is complete, and is durable on return.
    ///
    /// # Errors
    /// [`VolumeError::Exists`] if there is one, whole or [lost](VolumeError::Lost);
    /// or what the system refused, then nothing is left.
    fn create(&self, state: &VolumeState) -> Result<Volume, VolumeError>;

    /// Opens a volume.
    ///
    /// # Errors
    /// [`VolumeError::NotFound`], [`VolumeError::State`], [`VolumeError::Lost`]
    /// or an I/O failure.
    fn open(&self, sandbox: &SandboxKey) -> Result<Volume, VolumeError>;

    /// Replaces what the volume says of itself; durable on return.
    ///
    /// # Errors
    /// An I/O failure; then the old state is still whole.
    fn set_state(&self, state: &VolumeState) -> Result<(), VolumeError>;

    /// Drops everything but `workspace/`, and every `node_modules` tree in it.
    /// The volume must not be in use.
    ///
    /// # Errors
    /// An I/O failure; calling again goes on where it stopped.
    fn strip(&self, sandbox: &SandboxKey) -> Result<(), VolumeError>;

    /// Moves a volume out of the way, whole, so that another can be made.
    /// Returns where it is; only [`purge`](Self::purge) removes it.
    ///
    /// # Errors
    /// [`VolumeError::NotFound`] or an I/O failure.
    fn set_aside(&self, sandbox: &SandboxKey) -> Result<PathBuf, VolumeError>;

    /// Removes the volume with all its content; `Ok` if there is none. From the
    /// first moment on there is no volume, whatever is still on disk.
    ///
    /// # Errors
    /// An I/O failure; calling again goes on where it stopped.
    fn delete(&self, sandbox: &SandboxKey) -> Result<(), VolumeError>;

    /// [`delete`](Self::delete), and what was set aside of the sandbox too.
    ///
    /// # Errors
    /// An I/O failure; calling again goes on where it stopped.
    fn purge(&self, sandbox: &SandboxKey) -> Result<(), VolumeError>;

    /// Finishes the deletes, and removes the creates, that died half way.
    /// Nothing else may use the store meanwhile.
    ///
    /// # Errors
    /// The first failure; the rest was tried.
    fn sweep(&self) -> io::Result<()>;

    /// The sandboxes that have a volume here, or what a create or a delete that
    /// died left of one.
    ///
    /// # Errors
    /// [`VolumeError::Io`].
    fn list(&self) -> Result<Vec<SandboxKey>, VolumeError>;
}
