//! Clearing up, at a server's start, what a death left on disk.

use std::collections::{HashMap, HashSet};

use hutch_sandboxes::SandboxRecord;
use hutch_sandboxes::ports::WorkspaceError;
use hutch_snapshots::SnapshotError;

use super::workspace::{LABEL, LocalWorkspaces, failed, is_content_of, of_driver};

impl LocalWorkspaces {
    /// Finishes creates and deletes that died, and drops what is left of
    /// destroyed sandboxes, and snapshots that a death
    /// left between two steps. Run before anything boots. What nobody knows is
    /// kept: a database that was lost must not take the work along.
    pub(crate) async fn sweep(&self, records: Vec<SandboxRecord>) -> Result<(), WorkspaceError> {
        let destroyed = records
            .iter()
            .filter(|record| record.destroyed_at.is_some());
        let destroyed: HashSet<_> = destroyed.map(|record| of_driver(&record.key)).collect();
        self.run(move |this| {
            if let Err(error) = this.volumes.sweep() {
                tracing::warn!(%error, "what half-done creates and deletes left was not swept");
            }
            for key in this.volumes.list().map_err(failed)? {
                if destroyed.contains(&key) {
                    tracing::info!(sandbox = %key, "dropping the volume of a destroyed sandbox");
                    this.volumes.purge(&key).map_err(failed)?;
                }
            }
            this.sweep_snapshots(&records)
        })
        .await
    }

    fn sweep_snapshots(&self, records: &[SandboxRecord]) -> Result<(), WorkspaceError> {
        let failed = |error: SnapshotError| WorkspaceError(error.to_string());
        let used = records.iter().filter_map(|record| record.backup);
        let used: HashSet<String> = used.map(|backup| backup.id.to_string()).collect();
        let owners: HashMap<String, &SandboxRecord> = records
            .iter()
            .map(|record| (record.key.to_string(), record))
            .collect();
        for id in self.snapshots.list().map_err(failed)? {
            if used.contains(&id.to_string()) {
                continue;
            }
            // One that cannot be read is left for people to look at.
            let Ok(manifest) = self.snapshots.describe(id) else {
                continue;
            };
            let owner = manifest.labels.get(LABEL).and_then(|key| owners.get(key));
            if owner.is_some_and(|owner| self.is_superseded(owner)) {
                tracing::info!(snapshot = %id, "dropping a snapshot that nothing refers to");
                self.snapshots.delete(id).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Whether nothing of a sandbox is in its snapshots but in the one on
    /// record: it is destroyed, its volume is dirty and wins, or its volume is
    /// what the record says.
    fn is_superseded(&self, owner: &SandboxRecord) -> bool {
        owner.destroyed_at.is_some()
            || self
                .volumes
                .open(&of_driver(&owner.key))
                .is_ok_and(|volume| {
                    let is_on_record = |backup| is_content_of(&volume.state, backup);
                    volume.state.dirty || owner.backup.is_some_and(is_on_record)
                })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use hutch_drivers::{DirectoryVolumes, VolumeState};
    use hutch_protocol::{CreateInput, Generation, ProjectId, Timestamp};
    use hutch_sandboxes::ports::Workspaces;
    use hutch_sandboxes::{BackupHandle, SandboxKey};
    use hutch_snapshots::LocalStore;

    use super::super::workspace::of_driver;
    use super::*;

    fn world() -> (tempfile::TempDir, LocalWorkspaces) {
        let dir = tempfile::tempdir().unwrap();
        let volumes = Arc::new(DirectoryVolumes::open(dir.path()).unwrap());
        let snapshots = LocalStore::open(&dir.path().join("snapshots")).unwrap();
        (dir, LocalWorkspaces::new(volumes, snapshots, None))
    }

    fn record(project: &ProjectId, name: &str, destroyed: bool) -> SandboxRecord {
        let key = SandboxKey {
            project: project.clone(),
            path: format!("/sandboxes/{name}").parse().unwrap(),
        };
        let mut record = SandboxRecord::born(key, &CreateInput::default(), Timestamp::now());
        record.destroyed_at = destroyed.then(Timestamp::now);
        record
    }

    #[tokio::test]
    async fn a_sweep_takes_the_volumes_of_destroyed_sandboxes_and_no_others() {
        let (_dir, workspaces) = world();
        let project = ProjectId::random();
        for name in ["destroyed", "half-removed", "unknown"] {
            let key = of_driver(&record(&project, name, false).key);
            let volume = workspaces
                .volumes
                .create(&VolumeState::new(key, Generation(1)));
            if name == "half-removed" {
                let state = volume.unwrap().path.with_file_name("state.json");
                std::fs::remove_file(state).unwrap();
            }
        }
        let records =
            ["destroyed", "half-removed", "never-was"].map(|name| record(&project, name, true));
        workspaces.sweep(records.to_vec()).await.unwrap();
        let unknown = of_driver(&record(&project, "unknown", false).key);
        assert_eq!(workspaces.volumes.list().unwrap(), vec![unknown]);
    }

    #[tokio::test]
    async fn a_sweep_drops_snapshots_only_where_the_work_is_elsewhere() {
        let (_dir, workspaces) = world();
        let project = ProjectId::random();
        // Each has a snapshot that no record refers to.
        let mut orphan = HashMap::new();
        for name in ["destroyed", "dirty", "moved", "lost-volume", "unknown"] {
            let key = record(&project, name, false).key;
            workspaces.prepare(key.clone(), None).await.unwrap();
            orphan.insert(name, workspaces.keep(key).await.unwrap());
        }
        let mut records = Vec::new();
        for (name, destroyed) in [
            ("destroyed", true),
            ("dirty", false),
            ("moved", false),
            ("lost-volume", false),
        ] {
            records.push(record(&project, name, destroyed));
        }
        // A settled one whose old snapshot was not dropped in time.
        let moved = &mut records[2];
        let handle = BackupHandle {
            id: workspaces.keep(moved.key.clone()).await.unwrap(),
            generation: Generation(2),
            created_at: Timestamp::now(),
        };
        workspaces
            .settle(moved.key.clone(), handle, None)
            .await
            .unwrap();
        moved.backup = Some(handle);
        workspaces
            .volumes
            .delete(&of_driver(&records[3].key))
            .unwrap();
        workspaces.sweep(records).await.unwrap();
        let left = workspaces.snapshots.list().unwrap();
        let left: HashSet<String> = left.iter().map(ToString::to_string).collect();
        let kept = [orphan["lost-volume"], orphan["unknown"], handle.id];
        assert_eq!(left, kept.iter().map(ToString::to_string).collect());
    }
}
