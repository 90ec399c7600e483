//! What an append does and refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use hutch_streams::{EventRef, StoreError};
use serde_json::json;
use support::{Fixture, event, object};

#[tokio::test]
async fn offsets_start_at_one_and_are_dense() {
    let f = Fixture::new();
    let first = f
        .append("/notes", vec![event("a"), event("b")])
        .await
        .unwrap();
    let second = f.append("/notes", vec![event("c")]).await.unwrap();
    let offsets: Vec<u64> = first
        .iter()
        .chain(&second)
        .map(|c| c.event.offset)
        .collect();
    assert_eq!(offsets, [1, 2, 3]);
    assert!(first.iter().chain(&second).all(|c| c.inserted));
    assert_eq!(f.types("/notes").await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_failed_event_takes_its_whole_transaction_along() {
    let f = Fixture::new();
    let refused = f
        .append("/notes", vec![event("a"), event("b").expect_offset(7)])
        .await;
    let error = refused.unwrap_err();
    assert_eq!(error.to_string(), "expected next offset 7, found 2");
    assert_eq!(error.name(), Some("StreamOffsetConflictError"));
    assert_eq!(f.store.head(&f.key("/notes")).await.unwrap(), None);
    assert_eq!(f.store.head(&f.key("/")).await.unwrap(), None);
}

#[tokio::test]
async fn a_key_appends_once() {
    let f = Fixture::new();
    let new = event("a").key("k");
    let first = f
        .append("/notes", vec![new.clone(), event("b"), new.clone()])
        .await
        .unwrap();
    let again = f.append("/notes", vec![new.clone()]).await.unwrap();
    assert_eq!(
        first.iter().map(|c| c.inserted).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(first[2].event, first[0].event);
    assert_eq!(
        (again[0].inserted, &again[0].event),
        (false, &first[0].event)
    );

    let other = event("z").key("k");
    let error = f.append("/notes", vec![other]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "idempotency key \"k\" already names a different event at offset 1"
    );
    assert!(
        matches!(error, StoreError::IdempotencyConflict { existing, .. } if existing.event_type == "a")
    );

    let error = f
        .append("/notes", vec![new.expect_offset(5)])
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "idempotency hit at offset 1, got 5");
}

#[tokio::test]
async fn a_committed_event_has_the_documented_json() {
    let f = Fixture::new();
    let mut new = event("note/added")
        .key("k")
        .metadata(object(json!({"by": "me"})));
    new.payload = object(json!({"text": "hi", "n": 1.5}));
    let made = f.append("/notes", vec![new]).await.unwrap().remove(0).event;
    let read = f
        .store
        .get_event(&f.key("/notes"), EventRef::Key("k".into()))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(read, made);
    let at = made.created_at.to_string();
    assert_eq!(
        serde_json::to_value(&made).unwrap(),
        json!({"offset": 1, "type": "note/added", "payload": {"text": "hi", "n": 1.5},
            "metadata": {"by": "me"}, "idempotencyKey": "k", "createdAt": at, "path": "/notes"})
    );
}
