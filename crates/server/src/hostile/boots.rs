//! Daemons that are wrong from the start.

use super::*;

/// Creates one, runs a command in it, and sees that others are served.
async fn exec(world: &World, name: &str) -> Result<Value, ErrorValue> {
    let sandbox = world.create(name).await;
    let result = within(sandbox.call("exec", vec!["true".into()])).await;
    world.others_work().await;
    result
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_does_not_take_part_fails_its_boot_alone() {
    let world = World::new().await;
    world.create("good").await;
    let refused = [
        "control-mute",
        "user-mute",
        "control-silent",
        "control-refuses",
        "control-closes",
    ];
    let tries = refused.map(|name| {
        let world = &world;
        async move { (name, exec(world, name).await) }
    });
    for (name, result) in futures_util::future::join_all(tries).await {
        let error = result.unwrap_err();
        assert_eq!(
            error.code(),
            Some("CONTAINER_UNAVAILABLE"),
            "{name}: {error}"
        );
        assert!(error.message.len() < 8192, "{name}");
    }
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_control_answers_steers_nothing() {
    let world = World::new().await;
    world.create("good").await;
    let result = exec(&world, "control-is-odd").await.unwrap();
    assert_eq!(result.get("stdout").and_then(Value::as_str), Some("ok"));
    let sandbox = world.handle("control-is-odd");
    within(sandbox.call("sleep", vec![])).await.unwrap();
    within(sandbox.call("destroy", vec![])).await.unwrap();
    world.server.stop().await;
}
