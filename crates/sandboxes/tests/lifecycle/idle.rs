use std::sync::atomic::Ordering;

use hutch_protocol::{CreateInput, SleepAfter};
use hutch_sandboxes::Sandbox;

use crate::world::{World, path, project};

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
