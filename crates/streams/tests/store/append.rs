//! What an append does and refuses.

use std::sync::atomic::{AtomicUsize, Ordering};

use hutch_protocol::{ProjectId, Timestamp};
use hutch_streams::{
    Append, Clock, EventQuery, EventRef, NewEvent, Options, StoreError, StreamKey, Transaction,
};
use serde_json::json;

use crate::fixture::{Fixture, event, object};

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

#[tokio::test]
async fn keys_belong_to_their_stream() {
    let f = Fixture::new();
    let new = || vec![event("a").key("k")];
    assert!(f.append("/one", new()).await.unwrap()[0].inserted);
    assert!(f.append("/two", new()).await.unwrap()[0].inserted);
    let other = StreamKey::new(&ProjectId::random(), &"/one".parse().unwrap());
    let append = Append {
        stream: other,
        events: new(),
    };
    let outcome = f
        .store
        .commit(Transaction::new().append(append))
        .await
        .unwrap();
    assert!(outcome.events().all(|committed| committed.inserted));
}

#[tokio::test]
async fn the_order_of_fields_does_not_make_a_body_different() {
    let f = Fixture::new();
    let new = |text: &str| {
        let payload = serde_json::from_str(text).unwrap();
        vec![NewEvent::new("a", payload).key("k")]
    };
    let texts = [
        r#"{"a": 1, "b": [0.1, 2.5e-300], "c": "\u0000"}"#,
        r#"{"c": "\u0000", "b": [0.1, 2.5e-300], "a": 1}"#,
    ];
    assert!(f.append("/notes", new(texts[0])).await.unwrap()[0].inserted);
    assert!(!f.append("/notes", new(texts[1])).await.unwrap()[0].inserted);
    assert!(f.append("/notes", new(r#"{"a": 1}"#)).await.is_err());
}

#[tokio::test]
async fn one_of_twenty_racing_appends_with_one_key_is_inserted() {
    let f = Fixture::new();
    let racers = (0..20).map(|_| f.append("/sandboxes", vec![event("claim").key("name")]));
    let all = futures_util::future::join_all(racers).await;
    let inserted = all.iter().filter(|made| made.as_ref().unwrap()[0].inserted);
    assert_eq!(inserted.count(), 1);
    assert_eq!(f.types("/sandboxes").await, ["claim"]);
}

#[tokio::test]
async fn a_refused_transaction_leaves_its_neighbours_alone() {
    let f = Fixture::new();
    let racers = (0..60).map(|n| {
        let mut new = event(if n % 3 == 0 { "bad" } else { "good" });
        if n % 3 == 0 {
            new = new.expect_offset(1000);
        }
        f.append("/notes", vec![new])
    });
    let all = futures_util::future::join_all(racers).await;
    assert_eq!(all.iter().filter(|made| made.is_ok()).count(), 40);
    let events = f
        .store
        .get_events(&f.key("/notes"), EventQuery::default())
        .await
        .unwrap();
    assert!(events.iter().all(|event| event.event_type == "good"));
    assert_eq!(events.last().unwrap().offset, 40);
}

#[tokio::test]
async fn time_never_goes_back_within_a_stream() {
    let times = [5_000, 3_000, 7_000].map(Timestamp::from_millis);
    let next = AtomicUsize::new(0);
    let clock = Clock::from_fn(move || times[next.fetch_add(1, Ordering::Relaxed).min(2)]);
    let f = Fixture::with(Options {
        clock,
        ..Options::default()
    });
    let mut seen = Vec::new();
    for _ in 0..3 {
        let made = f.append("/notes", vec![event("a")]).await.unwrap();
        seen.push(made[0].event.created_at.millis());
    }
    assert_eq!(seen, [5_000, 5_000, 7_000]);
}
