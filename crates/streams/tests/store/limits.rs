//! What is too large or malformed.

use hutch_protocol::StreamPath;
use hutch_streams::{Append, Expect, NewEvent, RecordId, StoreError, Transaction, limits};
use serde_json::{Value, json};

use crate::fixture::{Fixture, event, object};

fn with_payload(payload: Value) -> NewEvent {
    NewEvent::new("a", object(payload))
}

async fn too_large(f: &Fixture, events: Vec<NewEvent>) -> bool {
    let refused = f.append("/notes", events).await;
    matches!(refused, Err(StoreError::TooLarge { .. }))
}

#[tokio::test]
async fn a_payload_has_at_most_64_kib() {
    let f = Fixture::new();
    let frame = r#"{"t":""}"#.len();
    let of = |bytes: usize| with_payload(json!({"t": "x".repeat(bytes - frame)}));
    f.append("/notes", vec![of(64 * 1024)]).await.unwrap();
    let error = f
        .append("/notes", vec![of(64 * 1024 + 1)])
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the payload of a \"a\" event has 65537 bytes, 65536 at most"
    );
    let metadata = object(json!({"t": "x".repeat(limits::METADATA_BYTES)}));
    assert!(too_large(&f, vec![event("a").metadata(metadata)]).await);
}

#[tokio::test]
async fn nothing_is_stored_that_cannot_be_read_back() {
    let f = Fixture::new();
    let nested = |levels: usize| {
        let inner = (1..levels).fold(json!(0), |value, _| json!([value]));
        with_payload(json!({"t": inner}))
    };
    f.append("/notes", vec![nested(limits::JSON_DEPTH - 1)])
        .await
        .unwrap();
    assert!(too_large(&f, vec![nested(limits::JSON_DEPTH)]).await);
    assert!(too_large(&f, vec![nested(300)]).await);
    assert_eq!(f.types("/notes").await, ["a"]);
}

#[tokio::test]
async fn batches_keys_and_types_have_limits() {
    let f = Fixture::new();
    let many = vec![event("a"); limits::EVENTS_PER_APPEND];
    assert_eq!(
        f.append("/notes", many).await.unwrap().len(),
        limits::EVENTS_PER_APPEND
    );
    assert!(too_large(&f, vec![event("a"); limits::EVENTS_PER_APPEND + 1]).await);
    assert!(too_large(&f, vec![event(&"t".repeat(limits::EVENT_TYPE_BYTES + 1))]).await);
    let key = "k".repeat(limits::IDEMPOTENCY_KEY_BYTES + 1);
    assert!(too_large(&f, vec![event("a").key(key)]).await);
    let large = with_payload(json!({"t": "x".repeat(60_000)}));
    assert!(too_large(&f, vec![large; 80]).await);
}

#[tokio::test]
async fn malformed_events_are_refused() {
    let f = Fixture::new();
    for bad in [
        event(""),
        event("*"),
        event("a b"),
        event("é"),
        event("a\n"),
        event("a").key(""),
        event("a").key(" k"),
        event("a").key("k\0"),
        event("a").expect_offset(0),
    ] {
        let refused = f.append("/notes", vec![bad.clone()]).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{bad:?}");
    }
}

#[tokio::test]
async fn deep_paths_are_refused() {
    let f = Fixture::new();
    f.append(&"/a".repeat(limits::PATH_SEGMENTS), vec![event("a")])
        .await
        .unwrap();
    let path: StreamPath = "/b".repeat(limits::PATH_SEGMENTS + 1).parse().unwrap();
    let append = Append::one(&f.project, &path, event("a"));
    let refused = f.store.commit(Transaction::new().append(append)).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })));
}

#[tokio::test]
async fn records_have_limits() {
    let f = Fixture::new();
    let write = async |id, json| {
        let write = Transaction::new().write(id, 1, json, Expect::Any);
        f.store.commit(write).await
    };
    let good = || RecordId::new("sandbox", &f.project, "a");
    let large = json!("x".repeat(limits::RECORD_BYTES));
    assert!(matches!(
        write(good(), large).await,
        Err(StoreError::TooLarge { .. })
    ));
    let deep = (0..200).fold(json!(0), |value, _| json!([value]));
    assert!(matches!(
        write(good(), deep).await,
        Err(StoreError::TooLarge { .. })
    ));
    for id in [
        RecordId::new("", &f.project, "a"),
        RecordId::new("k", &f.project, "a\n"),
    ] {
        assert!(matches!(
            write(id, json!(0)).await,
            Err(StoreError::Invalid(_))
        ));
    }
    let mut many = Transaction::new();
    for n in 0..=limits::OPERATIONS_PER_TRANSACTION {
        many = many.delete(RecordId::new("k", &f.project, n.to_string()), Expect::Any);
    }
    assert!(matches!(
        f.store.commit(many).await,
        Err(StoreError::TooLarge { .. })
    ));
}
