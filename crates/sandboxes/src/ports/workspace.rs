//! Where workspaces live while awake and what is kept of them asleep.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use hutch_protocol::BackupId;

use crate::record::{BackupHandle, SandboxKey};

/// What went wrong with a workspace.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct WorkspaceError(pub String);

/// Where the content of a prepared volume came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// There was nothing to keep yet.
    Fresh,
    /// The volume on this host was already the right one.
    Live,
    /// The snapshot was unpacked.
    Restored(BackupId),
    /// The snapshot was too old; the workspace starts empty.
    Expired(BackupId),
}

/// A volume that is ready to boot from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Its directory on the host.
    pub volume: PathBuf,
    /// Where its content came from.
    pub source: Source,
}

/// Volumes and the snapshot store, seen from the domain.
pub trait Workspaces: Send + Sync + 'static {
    /// Makes the volume ready and marks it dirty, durably. A dirty volume wins
    /// over the snapshot; a clean one is used if its generation is the handle's.
    fn prepare(
        &self,
        key: SandboxKey,
        backup: Option<BackupHandle>,
    ) -> BoxFuture<'_, Result<Prepared, WorkspaceError>>;

    /// Archives the workspace of a stopped machine, verified and fsynced.
    fn keep(&self, key: SandboxKey) -> BoxFuture<'_, Result<BackupId, WorkspaceError>>;

    /// After the handle moved to `backup`: marks the volume clean, drops all
    /// that the snapshot does not hold, and drops the snapshot before it.
    fn settle(
        &self,
        key: SandboxKey,
        backup: BackupHandle,
        before: Option<BackupId>,
    ) -> BoxFuture<'_, Result<(), WorkspaceError>>;

    /// Gives up what cannot be restored: the next boot starts empty.
    fn discard(&self, key: SandboxKey) -> BoxFuture<'_, Result<(), WorkspaceError>>;

    /// Drops the volume and the snapshots of a destroyed sandbox.
    fn delete(
        &self,
        key: SandboxKey,
        backup: Option<BackupId>,
    ) -> BoxFuture<'_, Result<(), WorkspaceError>>;
}
