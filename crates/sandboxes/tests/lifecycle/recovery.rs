use std::sync::atomic::Ordering;

use serde_json::json;

use crate::world::{World, born, path, project};

#[tokio::test]
async fn the_next_server_adopts_what_is_on_record() {
    let world = World::new();
    let first = world.sandboxes();
    let (sandbox, path) = born(&world, &first, "a").await;
    sandbox.admit().await.unwrap();
    let boot = sandbox.describe().boot_id;
    drop((sandbox, first));

    let second = world.sandboxes();
    second.recover().await.unwrap();
    let sandbox = second.find_usable(&project(), &path).await.unwrap();
    assert_eq!(sandbox.describe().boot_id, boot);
    sandbox.admit().await.unwrap();
    assert_eq!(world.starts.load(Ordering::SeqCst), 1);
    assert_eq!(world.types(&path), ["created", "started"]);
}

#[tokio::test]
async fn an_adopted_machine_gets_the_environment_on_record() {
    let world = World::new();
    let first = world.sandboxes();
    let (sandbox, path) = born(&world, &first, "a").await;
    sandbox.admit().await.unwrap();
    drop((sandbox, first));
    {
        // Stored, but the server died before the machine had it.
        let mut store = world.store.lock().unwrap();
        let env = &mut store.records.get_mut(&path).unwrap().env;
        env.insert("A".into(), "2".into());
    }
    world.sandboxes().recover().await.unwrap();
    assert_eq!(world.machine().env.lock().unwrap()["A"], "2");
}

#[tokio::test]
async fn a_machine_whose_identity_differs_is_ended_not_adopted() {
    let world = World::new();
    let first = world.sandboxes();
    let (sandbox, path) = born(&world, &first, "a").await;
    sandbox.admit().await.unwrap();
    drop((sandbox, first));
    {
        let mut store = world.store.lock().unwrap();
        let boot = store.records.get_mut(&path).unwrap().boot.as_mut().unwrap();
        boot.identity = json!({"boot": "another"});
    }
    let second = world.sandboxes();
    second.recover().await.unwrap();
    world.until(&path, "stopped", 1).await;
    assert!(*world.machine().dead.borrow());
    second
        .find_usable(&project(), &path)
        .await
        .unwrap()
        .admit()
        .await
        .unwrap();
    assert_eq!(world.starts.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_record_whose_machine_is_gone_is_told_so() {
    let world = World::new();
    let first = world.sandboxes();
    let (sandbox, gone) = born(&world, &first, "a").await;
    sandbox.admit().await.unwrap();
    drop((sandbox, first));
    world.live.lock().unwrap().clear();
    let second = world.sandboxes();
    second.recover().await.unwrap();
    world.until(&gone, "stopped", 1).await;
    let sandbox = second.find_usable(&project(), &path("a")).await.unwrap();
    assert!(!sandbox.describe().running);
}
