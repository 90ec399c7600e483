use hutch_protocol::{CreateInput, ErrorCode, InstanceType, Status};
use hutch_sandboxes::{MaxInstances, Settings};

use crate::world::{World, create, path, project};

#[tokio::test]
async fn machines_of_a_size_have_a_limit_that_sleep_frees_at_once() {
    let world = World::new();
    let max_instances = MaxInstances::default().with(InstanceType::Basic, 1);
    let settings = Settings {
        max_instances,
        ..Settings::default()
    };
    let sandboxes = world.sandboxes_with(settings);
    let mut all = Vec::new();
    for name in ["a", "b"] {
        all.push(create(&sandboxes, name, CreateInput::default()).await);
    }
    all[0].admit().await.unwrap();
    let refused = all[1].admit().await.err().unwrap();
    assert_eq!(refused.code, ErrorCode::CapacityExceeded);
    assert!(
        refused.message.contains("--max-instances basic="),
        "{refused}"
    );
    assert_eq!(refused.details["maxInstances"], 1);
    assert_eq!(world.types(&path("b")), ["created"]);
    all[0].sleep().await.unwrap();
    all[1].admit().await.unwrap();
    assert!(all[0].admit().await.is_err());
    all[1].destroy().await.unwrap();
    all[0].admit().await.unwrap();
    // A machine that ends by itself gives its place back.
    world.machine().dead.send_replace(true);
    world.until(&path("a"), "stopped", 2).await;
    all[0].admit().await.unwrap();
}

#[tokio::test]
async fn metrics_count_lives() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    for name in ["a", "b"] {
        let sandbox = create(&sandboxes, name, CreateInput::default()).await;
        sandbox.admit().await.unwrap();
    }
    let sandbox = sandboxes.find(&project(), &path("a")).await.unwrap();
    sandbox.sleep().await.unwrap();
    world
        .fail_start
        .store(true, std::sync::atomic::Ordering::SeqCst);
    sandbox.admit().await.err().unwrap();
    let metrics = sandboxes.metrics().await.unwrap();
    let sizes = metrics.instances.iter().map(|line| (line.0, line.1));
    assert!(sizes.clone().any(|line| line == (InstanceType::Basic, 1)));
    assert_eq!(sizes.count(), 6);
    assert_eq!(
        (metrics.boots, metrics.boot_failures, metrics.sleeps),
        (2, 1, 1)
    );
    assert_eq!(metrics.boot_buckets.last(), Some(&2));
    let expected = [
        (Status::Created, 0),
        (Status::Running, 1),
        (Status::Stopped, 1),
        (Status::Destroyed, 0),
    ];
    assert_eq!(metrics.sandboxes, expected);
}
