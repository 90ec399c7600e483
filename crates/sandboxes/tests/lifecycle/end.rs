use std::sync::atomic::Ordering;

use futures_util::future::join;
use hutch_protocol::{CreateInput, ErrorCode, Status};

use crate::world::{World, born, path, project};

#[tokio::test]
async fn a_machine_that_ends_by_itself_is_recorded_and_booted_again() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    let admission = sandbox.admit().await.unwrap();
    world.machine().dead.send_replace(true);
    assert_eq!(admission.ended().await, "exited");
    world.until(&path, "stopped", 1).await;
    drop(admission);
    sandbox.admit().await.unwrap();
    assert_eq!(
        world.types(&path),
        ["created", "started", "stopped", "started"]
    );
    assert!(
        world.kept.lock().unwrap().is_empty(),
        "a crash makes no snapshot"
    );
}

#[tokio::test]
async fn destroy_is_final_idempotent_and_retires_the_name() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (sandbox, path) = born(&world, &sandboxes, "a").await;
    let admission = sandbox.admit().await.unwrap();
    sandbox.destroy().await.unwrap();
    sandbox.destroy().await.unwrap();
    assert_eq!(admission.ended().await, "destroyed");
    assert_eq!(
        world.types(&path),
        ["created", "started", "destroy-requested", "destroyed"]
    );
    assert!(*world.machine().dead.borrow());
    for error in [
        sandbox.admit().await.err().unwrap(),
        sandbox.sleep().await.unwrap_err(),
        sandboxes
            .find_usable(&project(), &path)
            .await
            .err()
            .unwrap(),
        sandboxes
            .create(&project(), &path, CreateInput::default())
            .await
            .err()
            .unwrap(),
    ] {
        assert_eq!(error.code, ErrorCode::SandboxNameRetired);
    }
    let found = sandboxes.find(&project(), &path).await.unwrap();
    assert_eq!(found.describe().status, Status::Destroyed);
    assert_eq!(
        sandboxes.list(&project()).await.unwrap()[0].status,
        Status::Destroyed
    );
}

#[tokio::test]
async fn racing_calls_and_destroy_end_in_a_result_or_a_typed_error() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    for round in 0..50 {
        let (sandbox, _) = born(&world, &sandboxes, &format!("r{round}")).await;
        let (admitted, destroyed) = join(sandbox.admit(), sandbox.destroy()).await;
        destroyed.unwrap();
        match admitted {
            Ok(admission) => assert_eq!(admission.ended().await, "destroyed"),
            Err(error) => assert_eq!(error.code, ErrorCode::SandboxNameRetired),
        }
    }
    let live = world.live.lock().unwrap();
    assert!(live.iter().all(|machine| *machine.dead.borrow()));
    assert!(world.starts.load(Ordering::SeqCst) <= 50);
    assert_eq!(path("r0").to_string(), "/sandboxes/r0");
}
