#![allow(clippy::unwrap_used)]
use hutch_drivers::DirectoryVolumes;
use hutch_protocol::ProjectId;

use super::*;

struct Home {
    dir: tempfile::TempDir,
    snapshots: LocalStore,
    workspaces: LocalWorkspaces,
    key: SandboxKey,
}

impl Home {
    fn new(ttl: Option<Duration>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let volumes = Arc::new(DirectoryVolumes::open(dir.path()).unwrap());
        let settings = hutch_snapshots::Settings {
            ttl,
            ..Default::default()
        };
        let snapshots = LocalStore::open_with(&dir.path().join("snapshots"), settings).unwrap();
        let workspaces = LocalWorkspaces::new(volumes, snapshots.clone(), ttl);
        let key = SandboxKey {
            project: ProjectId::random(),
            path: "/sandboxes/main".parse().unwrap(),
        };
        Self {
            dir,
            snapshots,
            workspaces,
            key,
        }
    }

    async fn prepare(&self, backup: Option<BackupHandle>) -> Result<Prepared, WorkspaceError> {
        self.workspaces.prepare(self.key.clone(), backup).await
    }

    /// Writes `work`, saves it, and moves the handle.
    async fn slept(&self, work: &str) -> BackupHandle {
        let prepared = self.prepare(None).await.unwrap();
        std::fs::write(prepared.volume.join("workspace/work"), work).unwrap();
        let id = self.workspaces.keep(self.key.clone()).await.unwrap();
        let backup = BackupHandle {
            id,
            generation: Generation(1),
            created_at: Timestamp::now(),
        };
        let settled = self.workspaces.settle(self.key.clone(), backup, None).await;
        settled.unwrap();
        backup
    }

    /// Waits until no work that nobody waits for is left.
    async fn settled(&self) {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while Arc::strong_count(&self.workspaces.volumes) > 1 {
            assert!(std::time::Instant::now() < until);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn lose_state(&self, prepared: &std::path::Path) {
        std::fs::remove_file(prepared.with_file_name("state.json")).unwrap();
    }

    /// How many snapshots a sweep leaves.
    async fn sweep(&self, grace: Duration) -> usize {
        self.workspaces.sweep_expired(grace).await.unwrap();
        self.snapshots.list().unwrap().len()
    }
}

const LONG: Option<Duration> = Some(Duration::from_secs(3600));

#[tokio::test]
async fn work_of_a_lost_state_is_set_aside_and_the_snapshot_used() {
    let home = Home::new(LONG);
    let backup = home.slept("saved").await;
    let live = home.prepare(Some(backup)).await.unwrap();
    assert_eq!(live.source, Source::Live);
    std::fs::write(live.volume.join("workspace/work"), "newer").unwrap();
    home.lose_state(&live.volume);
    let restored = home.prepare(Some(backup)).await.unwrap();
    assert_eq!(restored.source, Source::Restored(backup.id));
    let work = std::fs::read(restored.volume.join("workspace/work")).unwrap();
    assert_eq!(work, b"saved");
    let aside: Vec<_> = std::fs::read_dir(home.dir.path().join("volumes/.lost"))
        .unwrap()
        .flatten()
        .map(|entry| std::fs::read(entry.path().join("content/workspace/work")).unwrap())
        .collect();
    assert_eq!(aside, vec![b"newer".to_vec()]);
}

#[tokio::test]
async fn work_of_a_lost_state_without_a_snapshot_is_an_error_and_stays() {
    let home = Home::new(LONG);
    let live = home.prepare(None).await.unwrap();
    std::fs::write(live.volume.join("workspace/work"), "only").unwrap();
    home.lose_state(&live.volume);
    for _ in 0..2 {
        let error = home.prepare(None).await.unwrap_err();
        assert!(error.0.contains("state.json"), "{error}");
        let work = std::fs::read(live.volume.join("workspace/work")).unwrap();
        assert_eq!(work, b"only");
    }
    home.workspaces.discard(home.key.clone()).await.unwrap();
    let fresh = home.prepare(None).await.unwrap();
    assert_eq!(fresh.source, Source::Fresh);
}

#[tokio::test]
async fn a_restore_that_died_half_way_is_done_anew() {
    let home = Home::new(LONG);
    let backup = home.slept("saved").await;
    // As a server leaves it that is killed while it unpacks.
    let owner = of_driver(&home.key);
    home.workspaces.volumes.delete(&owner).unwrap();
    let unfinished = VolumeState::new(owner, Generation::default());
    let half = home.workspaces.volumes.create(&unfinished).unwrap();
    std::fs::write(half.path.join("workspace/wor"), "sav").unwrap();
    let restored = home.prepare(Some(backup)).await.unwrap();
    assert_eq!(restored.source, Source::Restored(backup.id));
    let workspace = restored.volume.join("workspace");
    assert_eq!(std::fs::read(workspace.join("work")).unwrap(), b"saved");
    assert!(!workspace.join("wor").exists());
}

#[tokio::test]
async fn an_expired_snapshot_is_told_before_and_after_it_is_swept() {
    let home = Home::new(Some(Duration::ZERO));
    let mut backup = home.slept("saved").await;
    backup.created_at = Timestamp::from_millis(backup.created_at.millis() - 5000);
    for swept in [false, true] {
        if swept {
            // Whole seconds are compared.
            let until = std::time::Instant::now() + Duration::from_secs(20);
            while home.sweep(Duration::ZERO).await > 0 {
                assert!(std::time::Instant::now() < until);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        home.workspaces.discard(home.key.clone()).await.unwrap();
        let prepared = home.prepare(Some(backup)).await.unwrap();
        assert_eq!(prepared.source, Source::Expired(backup.id), "{swept}");
    }
    for (ttl, grace) in [(None, 0), (Some(Duration::ZERO), 3600)] {
        let kept = Home::new(ttl);
        kept.slept("saved").await;
        assert_eq!(kept.sweep(Duration::from_secs(grace)).await, 1);
    }
}

const FILES: usize = 2000;

fn files(prepared: &Prepared) -> usize {
    let work = prepared.volume.join("workspace/many");
    std::fs::read_dir(work).unwrap().count()
}

/// A sandbox with many files, whose snapshot is on record.
async fn with_many_files(home: &Home) -> BackupHandle {
    let prepared = home.prepare(None).await.unwrap();
    let many = prepared.volume.join("workspace/many");
    std::fs::create_dir(&many).unwrap();
    for file in 0..FILES {
        std::fs::write(many.join(file.to_string()), file.to_string()).unwrap();
    }
    home.slept("saved").await
}

#[tokio::test]
async fn a_restore_that_nobody_waits_for_does_not_touch_the_next() {
    let home = Home::new(LONG);
    let backup = with_many_files(&home).await;
    for _ in 0..3 {
        home.workspaces.discard(home.key.clone()).await.unwrap();
        // As when a slow disk takes longer than the deadline.
        let waiting = home.prepare(Some(backup));
        assert!(tokio::time::timeout(Duration::ZERO, waiting).await.is_err());
        let prepared = home.prepare(Some(backup)).await.unwrap();
        assert_eq!(files(&prepared), FILES);
        home.settled().await;
        assert_eq!(files(&prepared), FILES);
        assert_eq!(
            home.prepare(Some(backup)).await.unwrap().source,
            Source::Live
        );
    }
}

#[tokio::test]
async fn a_save_that_nobody_waits_for_ends_and_leaves_nothing() {
    let home = Home::new(LONG);
    let backup = with_many_files(&home).await;
    let live = home.prepare(Some(backup)).await.unwrap();
    for file in 0..FILES {
        let place = live.volume.join(format!("workspace/many/{file}"));
        std::fs::write(place, format!("newer {file}")).unwrap();
    }
    let waiting = home.workspaces.keep(home.key.clone());
    assert!(tokio::time::timeout(Duration::ZERO, waiting).await.is_err());
    home.settled().await;
    let known: Vec<String> = home
        .snapshots
        .list()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(known, [backup.id.to_string()]);
    let tmp = home.dir.path().join("snapshots/tmp");
    assert_eq!(std::fs::read_dir(tmp).unwrap().count(), 0);
    // The disk is dirty still, and has the newer work.
    let again = home.prepare(Some(backup)).await.unwrap();
    assert_eq!(again.source, Source::Live);
    let newer = std::fs::read(again.volume.join("workspace/many/7")).unwrap();
    assert_eq!(newer, b"newer 7");
}
