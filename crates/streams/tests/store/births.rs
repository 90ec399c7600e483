//! How a new stream makes itself known.

use hutch_streams::{EventQuery, StreamListing};
use serde_json::json;

use crate::fixture::{Fixture, event};

async fn announced(f: &Fixture, path: &str) -> Vec<String> {
    let events = f
        .store
        .get_events(&f.key(path), EventQuery::default())
        .await
        .unwrap();
    let mut children = Vec::new();
    for event in events {
        if event.event_type == "stream/child-stream-created" {
            let child = event.payload["childPath"].as_str().unwrap().to_owned();
            let key = format!("child-stream-created:{path}:{child}");
            assert_eq!(event.idempotency_key, Some(key));
            assert_eq!(event.payload.len(), 1);
            children.push(child);
        }
    }
    children
}

#[tokio::test]
async fn a_first_event_is_announced_to_every_ancestor() {
    let f = Fixture::new();
    let made = f.append("/a/b/c", vec![event("x")]).await.unwrap();
    assert_eq!(made[0].event.offset, 1);
    assert_eq!(announced(&f, "/").await, ["/a", "/a/b", "/a/b/c"]);
    assert_eq!(announced(&f, "/a").await, ["/a/b", "/a/b/c"]);
    assert_eq!(announced(&f, "/a/b").await, ["/a/b/c"]);
    assert_eq!(f.types("/a/b/c").await, ["x"]);
}

#[tokio::test]
async fn later_events_and_existing_ancestors_announce_nothing() {
    let f = Fixture::new();
    f.append("/a/b", vec![event("x")]).await.unwrap();
    f.append("/a/b", vec![event("y")]).await.unwrap();
    f.append("/a/c", vec![event("z")]).await.unwrap();
    f.append("/a", vec![event("w")]).await.unwrap();
    assert_eq!(announced(&f, "/").await, ["/a", "/a/b", "/a/c"]);
    assert_eq!(announced(&f, "/a").await, ["/a/b", "/a/c"]);
}

#[tokio::test]
async fn the_root_has_nobody_to_tell() {
    let f = Fixture::new();
    f.append("/", vec![event("x")]).await.unwrap();
    assert_eq!(f.types("/").await, ["x"]);
}

#[tokio::test]
async fn no_read_makes_a_stream() {
    let f = Fixture::new();
    let key = f.key("/ghost");
    assert_eq!(f.store.head(&key).await.unwrap(), None);
    assert!(f.types("/ghost").await.is_empty());
    let tail = f
        .store
        .subscribe(hutch_streams::Subscribe::new(&f.project, &key.path));
    drop(tail.unwrap());
    f.append("/ghost", Vec::new()).await.unwrap();
    let listed = f
        .store
        .list_streams(Some(&f.project), StreamListing::new(""))
        .await;
    assert_eq!(listed.unwrap(), []);
}

#[tokio::test]
async fn nobody_else_can_write_or_block_an_announcement() {
    let f = Fixture::new();
    let forged = event("stream/child-stream-created");
    assert!(f.append("/a", vec![forged]).await.is_err());
    let squatting = event("x").key("child-stream-created:/a:/a/b");
    assert!(f.append("/a", vec![squatting]).await.is_err());
}

#[tokio::test]
async fn the_wire_form_of_a_new_event_is_strict() {
    let read = |value| serde_json::from_value::<hutch_streams::NewEvent>(value);
    let full =
        json!({"type": "a", "payload": {}, "metadata": {}, "idempotencyKey": "k", "offset": 3});
    assert_eq!(read(full).unwrap().expected_offset, Some(3));
    assert_eq!(read(json!({"type": "a"})).unwrap(), event("a"));
    assert!(read(json!({"type": "a", "createdAt": "now"})).is_err());
    assert!(read(json!({"type": "a", "payload": [1]})).is_err());
    assert!(read(json!({"payload": {}})).is_err());
    let spaced = read(json!({"type": "a", "idempotencyKey": " sandbox/x "})).unwrap();
    assert_eq!(spaced.idempotency_key.as_deref(), Some("sandbox/x"));
}
