//! The domain's workspaces on volumes and the local snapshot store.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hutch_drivers::{Volume, VolumeError, VolumeState, VolumeStore};
use hutch_failpoint::{Injected, failpoint};
use hutch_protocol::{BackupId, Generation, Timestamp};
use hutch_sandboxes::ports::{Prepared, Source, WorkspaceError, Workspaces};
use hutch_sandboxes::{BackupHandle, SandboxKey};
use hutch_snapshots::{Cancel, LocalStore, SaveMeta, SnapshotError, SnapshotId};
use rustix::fs::{Mode, OFlags, ResolveFlags};

mod turns;
use turns::{Turns, Wanted};

/// The label of a snapshot that says whose it is.
pub(super) const LABEL: &str = "sandbox";

/// Volumes and snapshots on this host. Every call runs on a blocking thread.
#[derive(Clone)]
pub(crate) struct LocalWorkspaces {
    pub(super) volumes: Arc<dyn VolumeStore>,
    pub(super) snapshots: LocalStore,
    /// For how long the store's snapshots can be restored.
    ttl: Option<Duration>,
    turns: Turns,
}

impl LocalWorkspaces {
    /// `ttl` is that of the store's snapshots.
    pub(crate) fn new(
        volumes: Arc<dyn VolumeStore>,
        snapshots: LocalStore,
        ttl: Option<Duration>,
    ) -> Self {
        Self {
            volumes,
            snapshots,
            ttl,
            turns: Turns::default(),
        }
    }

    /// Drops the snapshots that expired more than `grace` ago. One that cannot
    /// be read is kept. `prepare` still knows an expired one by its handle.
    pub(crate) async fn sweep_expired(&self, grace: Duration) -> Result<(), WorkspaceError> {
        self.run(move |this| {
            let before = ago(grace).millis() / 1000;
            let failed = |error: SnapshotError| WorkspaceError(error.to_string());
            for id in this.snapshots.list().map_err(failed)? {
                let expires = this.snapshots.describe(id).ok();
                let expires = expires.and_then(|manifest| manifest.expires_at);
                if expires.is_none_or(|at| at.unix_timestamp() >= before) {
                    continue;
                }
                tracing::info!(snapshot = %id, "dropping an expired snapshot");
                match this.snapshots.delete(id) {
                    Ok(()) | Err(SnapshotError::NotFound { .. }) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let this = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&this)).await;
        done.map_err(|error| WorkspaceError(format!("the disk worker failed: {error}")))?
    }

    /// The same for one sandbox, once nothing else is at work on it. A caller
    /// that stops waiting ends the work, too, which keeps its turn until then.
    async fn run_for<T: Send + 'static>(
        &self,
        key: SandboxKey,
        work: impl FnOnce(&Self, &SandboxKey, &Cancel) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let turn = self.turns.take(&key).await;
        let cancel = Cancel::new();
        let _wanted = Wanted(cancel.clone());
        self.run(move |this| {
            let _turn = turn;
            work(this, &key, &cancel)
        })
        .await
    }

    fn prepare_now(
        &self,
        key: &SandboxKey,
        backup: Option<BackupHandle>,
        cancel: &Cancel,
    ) -> Result<Prepared, WorkspaceError> {
        let owner = of_driver(key);
        match self.volumes.open(&owner) {
            Ok(volume) if volume.state.dirty => return Ok(prepared(volume, Source::Live)),
            Ok(volume) if backup.is_some_and(|backup| is_content_of(&volume.state, backup)) => {
                let state = VolumeState {
                    dirty: true,
                    ..volume.state.clone()
                };
                self.volumes.set_state(&state).map_err(failed)?;
                return Ok(prepared(volume, Source::Live));
            }
            // Clean, but not the content on record: a restore that died, or
            // one from before the handle moved.
            Ok(_) => self.volumes.delete(&owner).map_err(failed)?,
            Err(VolumeError::NotFound(_)) => {}
            // What the volume holds is unknown, what the snapshot holds is not.
            Err(VolumeError::Lost { reason, .. }) if backup.is_some() => {
                let aside = self.volumes.set_aside(&owner).map_err(failed)?;
                tracing::warn!(
                    sandbox = %key, reason, aside = %aside.display(),
                    "the state of a volume is lost; it is set aside and the snapshot is used"
                );
            }
            Err(error) => return Err(failed(error)),
        }
        let Some(backup) = backup else {
            return self.fresh(key, Generation::default(), Source::Fresh);
        };
        match self.restore(key, backup, cancel) {
            Ok(prepared) => Ok(prepared),
            Err(error) if self.is_expired(&error, backup) => {
                self.volumes.delete(&owner).map_err(failed)?;
                self.fresh(key, backup.generation, Source::Expired(backup.id))
            }
            Err(error) => {
                // The half-filled volume is clean and of no generation, so
                // nobody would use it; but it takes space.
                let _ = self.volumes.delete(&owner);
                Err(WorkspaceError(error.to_string()))
            }
        }
    }

    /// Whether a restore failed because the snapshot is too old, be it there
    /// or swept already.
    fn is_expired(&self, error: &SnapshotError, backup: BackupHandle) -> bool {
        match error {
            SnapshotError::Expired { .. } => true,
            SnapshotError::NotFound { .. } => {
                self.ttl.is_some_and(|ttl| backup.created_at < ago(ttl))
            }
            _ => false,
        }
    }

    fn fresh(
        &self,
        key: &SandboxKey,
        generation: Generation,
        source: Source,
    ) -> Result<Prepared, WorkspaceError> {
        let mut state = VolumeState::new(of_driver(key), generation);
        state.dirty = true;
        let volume = self.volumes.create(&state).map_err(failed)?;
        Ok(prepared(volume, source))
    }

    /// Restores into a new volume, which counts as the sandbox's only once its
    /// state says so, after everything is on disk.
    fn restore(
        &self,
        key: &SandboxKey,
        backup: BackupHandle,
        cancel: &Cancel,
    ) -> Result<Prepared, SnapshotError> {
        let io = |error: VolumeError| SnapshotError::Io {
            action: error.to_string(),
            source: std::io::Error::other("volume"),
        };
        let unfinished = VolumeState::new(of_driver(key), Generation::default());
        let volume = self.volumes.create(&unfinished).map_err(io)?;
        let into = workspace_dir(&volume).map_err(|source| SnapshotError::Io {
            action: "opening the workspace".into(),
            source,
        })?;
        let injected = |error: Injected| SnapshotError::Io {
            action: "restoring".into(),
            source: error.into(),
        };
        failpoint!("restore.made").map_err(injected)?;
        let id = snapshot_id(backup.id)?;
        self.snapshots.restore_with(id, into, cancel)?;
        failpoint!("restore.unpacked").map_err(injected)?;
        let state = VolumeState {
            generation: backup.generation,
            base: Some(backup.id),
            dirty: true,
            ..unfinished
        };
        self.volumes.set_state(&state).map_err(io)?;
        Ok(prepared(volume, Source::Restored(backup.id)))
    }
}

fn ago(time: Duration) -> Timestamp {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(Timestamp::now().millis().saturating_sub(millis))
}

pub(super) fn of_driver(key: &SandboxKey) -> hutch_drivers::SandboxKey {
    hutch_drivers::SandboxKey {
        project: key.project.clone(),
        name: key.path.name().clone(),
    }
}

pub(super) fn is_content_of(state: &VolumeState, backup: BackupHandle) -> bool {
    state.generation == backup.generation && state.base == Some(backup.id)
}

fn prepared(volume: Volume, source: Source) -> Prepared {
    Prepared {
        volume: volume.path,
        source,
    }
}

fn injected(error: Injected) -> WorkspaceError {
    WorkspaceError(error.to_string())
}

pub(super) fn failed(error: VolumeError) -> WorkspaceError {
    WorkspaceError(error.to_string())
}

/// The names of snapshots in events and in the store are the same UUIDs.
fn snapshot_id(id: BackupId) -> Result<SnapshotId, SnapshotError> {
    id.to_string().parse().map_err(|_| SnapshotError::Io {
        action: "reading the snapshot's id".into(),
        source: std::io::Error::other("not an id"),
    })
}

fn workspace_dir(volume: &Volume) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    Ok(rustix::fs::openat2(
        &volume.dir,
        "workspace",
        flags,
        Mode::empty(),
        resolve,
    )?)
}

impl Workspaces for LocalWorkspaces {
    fn prepare(
        &self,
        key: SandboxKey,
        backup: Option<BackupHandle>,
    ) -> BoxFuture<'_, Result<Prepared, WorkspaceError>> {
        let prepare = move |this: &Self, key: &SandboxKey, cancel: &Cancel| {
            this.prepare_now(key, backup, cancel)
        };
        self.run_for(key, prepare).boxed()
    }

    fn keep(&self, key: SandboxKey) -> BoxFuture<'_, Result<BackupId, WorkspaceError>> {
        self.run_for(key, move |this, key, cancel| {
            let volume = this.volumes.open(&of_driver(key)).map_err(failed)?;
            let tree = workspace_dir(&volume)
                .map_err(|error| WorkspaceError(format!("opening the workspace: {error}")))?;
            let labels = BTreeMap::from([(LABEL.to_owned(), key.to_string())]);
            let base = volume.state.base.and_then(|base| snapshot_id(base).ok());
            let meta = SaveMeta {
                labels,
                base,
                cancel: cancel.clone(),
                ..SaveMeta::default()
            };
            let manifest = this
                .snapshots
                .save(tree, meta)
                .map_err(|error| WorkspaceError(error.to_string()))?;
            let id = manifest.id.to_string().parse();
            id.map_err(|_| WorkspaceError("the snapshot store gave an id of another form".into()))
        })
        .boxed()
    }

    fn settle(
        &self,
        key: SandboxKey,
        backup: BackupHandle,
        before: Option<BackupId>,
    ) -> BoxFuture<'_, Result<(), WorkspaceError>> {
        self.run_for(key, move |this, key, _| {
            // Stripped while still dirty: a strip that dies leaves a volume
            // whose workspace is whole and wins.
            this.volumes.strip(&of_driver(key)).map_err(failed)?;
            failpoint!("sleep.stripped").map_err(injected)?;
            let mut state = VolumeState::new(of_driver(key), backup.generation);
            state.base = Some(backup.id);
            this.volumes.set_state(&state).map_err(failed)?;
            failpoint!("sleep.settled").map_err(injected)?;
            match before {
                Some(before) => this.forget(before),
                None => Ok(()),
            }
        })
        .boxed()
    }

    fn discard(&self, key: SandboxKey) -> BoxFuture<'_, Result<(), WorkspaceError>> {
        self.run_for(key, |this, key, _| {
            this.volumes.delete(&of_driver(key)).map_err(failed)
        })
        .boxed()
    }

    fn delete(
        &self,
        key: SandboxKey,
        backup: Option<BackupId>,
    ) -> BoxFuture<'_, Result<(), WorkspaceError>> {
        self.run_for(key, move |this, key, _| {
            this.volumes.delete(&of_driver(key)).map_err(failed)?;
            failpoint!("destroy.deleted").map_err(injected)?;
            match backup {
                Some(backup) => this.forget(backup),
                None => Ok(()),
            }
        })
        .boxed()
    }
}

impl LocalWorkspaces {
    fn forget(&self, backup: BackupId) -> Result<(), WorkspaceError> {
        let id = snapshot_id(backup).map_err(|error| WorkspaceError(error.to_string()))?;
        match self.snapshots.delete(id) {
            Ok(()) | Err(SnapshotError::NotFound { .. }) => Ok(()),
            Err(error) => Err(WorkspaceError(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
