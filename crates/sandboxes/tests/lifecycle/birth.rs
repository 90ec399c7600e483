use futures_util::future::join_all;
use hutch_protocol::event::CreateRequested;
use hutch_protocol::{CreateInput, ErrorCode, InstanceType};
use serde_json::json;

use crate::world::{World, born, path, project};

#[tokio::test]
async fn of_twenty_racing_creates_one_succeeds() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let (project, path) = (project(), path("a"));
    let creates = (0..20).map(|_| sandboxes.create(&project, &path, CreateInput::default()));
    let results = join_all(creates).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for error in results.into_iter().filter_map(Result::err) {
        assert_eq!(error.code, ErrorCode::SandboxAlreadyExists);
    }
    assert_eq!(world.types(&path), ["created"]);
}

#[tokio::test]
async fn birth_records_what_was_asked_for() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let input =
        json!({"instanceType": "lite", "env": {"A": "1"}, "sleepAfter": "30s", "keepAlive": true});
    let input = CreateInput::from_json(&input).unwrap();
    let sandbox = sandboxes
        .create(&project(), &path("a"), input)
        .await
        .unwrap();
    assert_eq!(world.types(&path("a")), ["created", "configured"]);
    let described = sandbox.describe();
    assert_eq!(described.instance_type, InstanceType::Lite);
    assert_eq!(described.env["A"], "1");
    assert!(described.keep_alive && !described.running);
    let (offset, projection) = sandbox.projection();
    assert_eq!((offset, projection.env["A"].as_str()), (2, "1"));
}

#[tokio::test]
async fn a_claim_without_a_birth_is_finished_by_an_equal_create_alone() {
    let world = World::new();
    let (project, path) = (project(), path("a"));
    let claim = CreateRequested {
        path: path.clone(),
        input: CreateInput::default(),
    };
    world
        .store
        .lock()
        .unwrap()
        .claims
        .insert(path.clone(), claim);
    let sandboxes = world.sandboxes();

    let error = sandboxes.find(&project, &path).await.err().unwrap();
    assert_eq!(error.code, ErrorCode::SandboxCreatePending);
    let other = CreateInput {
        instance_type: InstanceType::Lite,
        ..CreateInput::default()
    };
    let error = sandboxes
        .create(&project, &path, other)
        .await
        .err()
        .unwrap();
    assert_eq!(error.code, ErrorCode::SandboxCreatePending);
    assert_eq!(
        error.details["difference"]["instanceType"],
        json!({"claimed": "basic", "asked": "lite"})
    );

    sandboxes
        .create(&project, &path, CreateInput::default())
        .await
        .unwrap();
    assert_eq!(world.types(&path), ["created"]);
}

#[tokio::test]
async fn nothing_mints_a_sandbox_by_asking_for_it() {
    let world = World::new();
    let sandboxes = world.sandboxes();
    let error = sandboxes
        .find_usable(&project(), &path("typo"))
        .await
        .err()
        .unwrap();
    assert_eq!(error.code, ErrorCode::SandboxNotFound);
    assert!(world.store.lock().unwrap().records.is_empty());
    born(&world, &sandboxes, "a").await;
    assert_eq!(sandboxes.list(&project()).await.unwrap().len(), 1);
}
