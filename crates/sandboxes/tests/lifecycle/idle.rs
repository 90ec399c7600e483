use std::sync::atomic::Ordering;

use hutch_protocol::{CreateInput, SleepAfter};
use hutch_sandboxes::Sandbox;

use crate::world::{World, create, path, project};

/// A sandbox with an idle time so short that a test can wait for its effect.
async fn quick(world: &std::sync::Arc<World>, sandboxes: &hutch_sandboxes::Sandboxes) -> Sandbox {
    let _ = world;
    let sleep_after = Some(SleepAfter::from_seconds(0.05).unwrap());
    let input = CreateInput {
        sleep_after,
        ..CreateInput::default()
    };
    sandboxes
        .create(&project(), &path("a"), input)
        .await
        .unwrap()
}

#[tokio::test]
async fn the_idle_fall_asleep_with_a_snapshot_and_no_request() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let sandbox = quick(&world, &sandboxes).await;
    drop(sandbox.admit().await.unwrap());
    world.until(&path("a"), "stopped", 1).await;
    assert_eq!(
        world.types(&path("a"))[2..],
        ["started", "backup-created", "stopped"]
    );
}

#[tokio::test]
async fn an_open_call_holds_awake_until_it_ends() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let sandbox = quick(&world, &sandboxes).await;
    let admission = sandbox.admit().await.unwrap();
    // Many idle times of real samples pass before the question.
    let machine = world.machine();
    machine.world.cpu_per_question.store(0, Ordering::SeqCst);
    tokio::time::timeout(std::time::Duration::from_millis(400), admission.ended())
        .await
        .unwrap_err();
    drop(admission);
    world.until(&path("a"), "stopped", 1).await;
}

#[tokio::test]
async fn use_of_the_cpu_holds_awake() {
    let world = World::new();
    world.cpu_per_question.store(50, Ordering::SeqCst);
    let sandboxes = world.sandboxes();
    let sandbox = quick(&world, &sandboxes).await;
    let admission = sandbox.admit().await.unwrap();
    let look = sandbox.peek().unwrap();
    drop(admission);
    tokio::time::timeout(std::time::Duration::from_millis(400), look.ended())
        .await
        .unwrap_err();
    world
        .machine()
        .world
        .cpu_per_question
        .store(0, Ordering::SeqCst);
    world.until(&path("a"), "stopped", 1).await;
}

#[tokio::test]
async fn keep_alive_holds_awake_until_it_is_switched_off() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let sandbox = quick(&world, &sandboxes).await;
    sandbox.configure(None, None, Some(true)).await.unwrap();
    let admission = sandbox.admit().await.unwrap();
    let look = sandbox.peek().unwrap();
    drop(admission);
    tokio::time::timeout(std::time::Duration::from_millis(400), look.ended())
        .await
        .unwrap_err();
    sandbox.configure(None, None, Some(false)).await.unwrap();
    world.until(&path("a"), "stopped", 1).await;
}

#[tokio::test]
async fn a_process_that_holds_awake_does_so_until_it_ends() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let sandbox = quick(&world, &sandboxes).await;
    let admission = sandbox.admit().await.unwrap();
    let look = sandbox.peek().unwrap();
    world
        .machine()
        .world
        .hold_awake
        .store(true, Ordering::SeqCst);
    drop(admission);
    tokio::time::timeout(std::time::Duration::from_millis(400), look.ended())
        .await
        .unwrap_err();
    world
        .machine()
        .world
        .hold_awake
        .store(false, Ordering::SeqCst);
    world.until(&path("a"), "stopped", 1).await;
}

#[tokio::test]
async fn a_call_during_the_freeze_turns_the_sleep_around() {
    let world = World::new();
    world.hold_freezes.store(true, Ordering::SeqCst);
    let sandboxes = world.sandboxes();
    let sandbox = quick(&world, &sandboxes).await;
    let admission = sandbox.admit().await.unwrap();
    let (look, binding) = (sandbox.peek().unwrap(), admission.bind());
    let boot = sandbox.describe().boot_id;
    let machine = world.machine();
    drop(admission);
    machine.freezing.notified().await;
    assert!(
        sandbox.peek().is_none(),
        "a frozen machine is not looked at"
    );
    // Both a new call and an object of this boot wait at the door.
    let let_go = async {
        tokio::task::yield_now().await;
        machine.hold_freeze.store(false, Ordering::SeqCst);
        machine.freeze_gate.notify_one();
    };
    let (call, object, ()) = tokio::join!(sandbox.admit(), binding.enter("read"), let_go);
    let held = (call.unwrap(), object.unwrap());
    assert_eq!(sandbox.describe().boot_id, boot);
    assert_eq!(machine.thaws.load(Ordering::SeqCst), 1);
    assert_eq!(world.types(&path("a"))[2..], ["started"]);
    tokio::time::timeout(std::time::Duration::from_millis(200), look.ended())
        .await
        .unwrap_err();
    drop(held);
    world.until(&path("a"), "stopped", 1).await;
    assert_eq!(look.ended().await, "idle");
}

#[tokio::test]
async fn a_shorter_idle_time_counts_at_once() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let input = CreateInput {
        sleep_after: Some(SleepAfter::from_seconds(3600.0).unwrap()),
        ..CreateInput::default()
    };
    let sandbox = create(&sandboxes, "a", input).await;
    drop(sandbox.admit().await.unwrap());
    let shorter = SleepAfter::from_seconds(0.2).unwrap();
    sandbox.configure(None, Some(shorter), None).await.unwrap();
    let left = sandbox.describe().awake.unwrap().sleeps_in_ms.unwrap();
    assert!(left <= 200, "{left}");
    world.until(&path("a"), "stopped", 1).await;
}

#[tokio::test]
async fn describe_gives_every_reason_and_the_time_of_sleep() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let sandbox = quick(&world, &sandboxes).await;
    let admission = sandbox.admit().await.unwrap();
    let kinds = || {
        let awake = sandbox.describe().awake.unwrap();
        assert_eq!(awake.sleeps_in_ms.is_some(), awake.sleeps_at.is_some());
        let kinds = awake.reasons.iter().map(|reason| reason.kind);
        (kinds.collect::<Vec<_>>(), awake.sleeps_at.is_some())
    };
    assert_eq!(kinds(), (vec!["openCalls"], false));
    sandbox.configure(None, None, Some(true)).await.unwrap();
    assert_eq!(kinds(), (vec!["keepAlive", "openCalls"], false));
    let long = SleepAfter::from_seconds(3600.0).unwrap();
    sandbox
        .configure(None, Some(long), Some(false))
        .await
        .unwrap();
    drop(admission);
    assert_eq!(kinds(), (vec!["recentActivity"], true));
}
