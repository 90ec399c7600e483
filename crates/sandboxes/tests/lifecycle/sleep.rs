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
    let refused = binding.enter("read").await.err().unwrap();
    assert_eq!(refused.code, ErrorCode::OperationInterrupted);
    assert_eq!(refused.details["admitted"], false);
    assert_eq!(refused.details["reason"], "runtime_replaced");
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
        binding.enter("read").await.is_err(),
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

#[tokio::test]
async fn restart_is_one_step() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    let admission = sandbox.admit().await.unwrap();
    let first = sandbox.describe().boot_id;
    // What arrives while it is restarted comes after it, not between.
    let (restarted, slept) = tokio::join!(sandbox.restart(), sandbox.sleep());
    restarted.unwrap();
    slept.unwrap();
    assert_eq!(admission.ended().await, "restart");
    assert_ne!(sandbox.describe().boot_id, first);
    let expected = [
        "sleep-requested",
        "backup-created",
        "stopped",
        "start-requested",
        "started",
        "sleep-requested",
        "backup-created",
        "stopped",
    ];
    assert_eq!(world.types(&path)[2..], expected);
    // A sleeper only starts.
    sandbox.restart().await.unwrap();
    assert_eq!(world.types(&path)[10..], ["start-requested", "started"]);
    sandbox.destroy().await.unwrap();
    let refused = sandbox.restart().await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::SandboxNameRetired);
}

#[tokio::test]
async fn a_restart_whose_snapshot_fails_runs_on_the_disk_it_had_and_says_so() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    sandbox.admit().await.unwrap();
    world.fail_keep.store(true, Ordering::SeqCst);
    let error = sandbox.restart().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::SnapshotFailed);
    assert!(error.message.contains("was restarted"), "{error}");
    assert_eq!(error.details["running"], true);
    assert!(sandbox.describe().running);
    let expected = [
        "sleep-requested",
        "backup-failed",
        "stopped",
        "start-requested",
        "started",
    ];
    assert_eq!(world.types(&path)[2..], expected);
}
