use std::sync::atomic::Ordering;

use hutch_protocol::{ErrorCode, Status};
use hutch_sandboxes::StartOptions;

use crate::world::{World, born};

#[tokio::test]
async fn sleep_ends_open_calls_and_moves_the_handle() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    let admission = sandbox.admit().await.unwrap();
    let binding = admission.bind();
    sandbox.sleep().await.unwrap();
    assert_eq!(admission.ended().await, "sleep");
    assert!(binding.enter().is_none());
    let expected = [
        "created",
        "started",
        "sleep-requested",
        "backup-created",
        "stopped",
    ];
    assert_eq!(world.types(&path), expected);
    let kept = world.kept.lock().unwrap()[0];
    assert_eq!(sandbox.describe().last_backup_id, Some(kept));

    sandbox.sleep().await.unwrap();
    assert_eq!(
        world.types(&path),
        expected,
        "sleep on a sleeper changes nothing"
    );
    sandbox.admit().await.unwrap();
    assert!(
        binding.enter().is_none(),
        "an object of the old boot stays dead"
    );
    assert_eq!(world.starts.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_failed_snapshot_stops_all_the_same_and_keeps_the_last_good_one() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    sandbox.admit().await.unwrap();
    sandbox.sleep().await.unwrap();
    let good = sandbox.describe().last_backup_id;
    sandbox.admit().await.unwrap();
    world.fail_keep.store(true, Ordering::SeqCst);
    let error = sandbox.sleep().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::SnapshotFailed);
    assert_eq!(
        world.types(&path)[6..],
        ["sleep-requested", "backup-failed", "stopped"]
    );
    assert_eq!(sandbox.describe().last_backup_id, good);
    assert_eq!(sandbox.describe().status, Status::Stopped);
    sandbox.admit().await.unwrap();
}

#[tokio::test]
async fn a_failed_restore_rejects_degrades_and_is_never_snapshotted() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    let discard = StartOptions {
        discard_workspace: true,
    };
    assert_eq!(
        sandbox.start(discard).await.unwrap_err().code,
        ErrorCode::ValidationFailed
    );
    sandbox.admit().await.unwrap();
    sandbox.sleep().await.unwrap();
    let good = sandbox.describe().last_backup_id;
    world.fail_restore.store(true, Ordering::SeqCst);
    let error = sandbox.admit().await.err().unwrap();
    assert_eq!(error.code, ErrorCode::BackupRestoreFailed);
    assert!(sandbox.describe().degraded);
    sandbox.sleep().await.unwrap();
    assert_eq!(sandbox.describe().last_backup_id, good);
    assert_eq!(world.kept.lock().unwrap().len(), 1);

    sandbox.start(discard).await.unwrap();
    let described = sandbox.describe();
    assert!(!described.degraded && described.running);
    assert_eq!(described.last_backup_id, None);
    assert_eq!(world.count(&path, "workspace-discarded"), 1);
}
