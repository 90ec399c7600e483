use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use hutch_protocol::{EnvPatch, ErrorCode};
use hutch_sandboxes::StartOptions;

use crate::world::{World, born};

#[tokio::test]
async fn twenty_first_calls_share_one_boot() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    let admissions = join_all((0..20).map(|_| sandbox.admit())).await;
    assert!(admissions.iter().all(Result::is_ok));
    assert_eq!(world.starts.load(Ordering::SeqCst), 1);
    assert_eq!(world.types(&path), ["created", "started"]);
    assert_eq!(sandbox.describe().awake.unwrap().open_calls, 20);
    drop(admissions);
    assert_eq!(sandbox.describe().awake.unwrap().open_calls, 0);
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_spoil_the_boot() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    world.hold_starts.store(true, Ordering::SeqCst);
    let impatient = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.admit().await.map(drop) }
    });
    while world.starts.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    impatient.abort();
    world.start_gate.notify_one();
    world.until(&path, "started", 1).await;
    sandbox.admit().await.unwrap();
    assert_eq!(world.starts.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_failed_boot_is_typed_and_the_next_one_works() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    world.fail_start.store(true, Ordering::SeqCst);
    let error = sandbox.admit().await.err().unwrap();
    assert_eq!(error.code, ErrorCode::ContainerUnavailable);
    world.fail_start.store(false, Ordering::SeqCst);
    sandbox.start(StartOptions::default()).await.unwrap();
    assert_eq!(
        world.types(&path),
        ["created", "start-requested", "started"]
    );
}

#[tokio::test]
async fn a_passive_call_never_wakes_and_never_counts() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, _) = born(&world, &sandboxes, "a").await;
    assert!(sandbox.peek().is_none());
    assert_eq!(world.starts.load(Ordering::SeqCst), 0);
    sandbox.admit().await.unwrap();
    let look = sandbox.peek().unwrap();
    assert_eq!(sandbox.describe().awake.unwrap().open_calls, 0);
    drop(look);
}

#[tokio::test]
async fn the_environment_is_there_at_boot_and_follows_changes() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    let patch = |value: Option<&str>| EnvPatch::from([("A".to_owned(), value.map(str::to_owned))]);
    sandbox
        .configure(Some(patch(Some("1"))), None, None)
        .await
        .unwrap();
    sandbox.admit().await.unwrap();
    assert_eq!(world.machine().env.lock().unwrap()["A"], "1");
    sandbox
        .configure(Some(patch(None)), None, None)
        .await
        .unwrap();
    assert!(world.machine().env.lock().unwrap().is_empty());
    assert_eq!(world.count(&path, "configured"), 2);
    let huge = EnvPatch::from([("B".to_owned(), Some("x".repeat(40_000)))]);
    let error = sandbox
        .configure(Some(huge), None, None)
        .await
        .err()
        .unwrap();
    assert_eq!(error.code, ErrorCode::InvalidEnv);
}
