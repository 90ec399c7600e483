//! What reads answer.

use hutch_streams::{EventQuery, EventRef, EventTypes, Order, StoreError, StreamListing};
use serde_json::json;

use crate::fixture::{Fixture, event, object};

/// Ten events: a b c a b c a b c a.
async fn ten() -> Fixture {
    let f = Fixture::new();
    let events = (0..10).map(|n| event(["a", "b", "c"][n % 3])).collect();
    f.append("/notes", events).await.unwrap();
    f
}

async fn offsets(f: &Fixture, query: EventQuery) -> Vec<u64> {
    let events = f.store.get_events(&f.key("/notes"), query).await.unwrap();
    events.iter().map(|event| event.offset).collect()
}

fn only(types: &[&str]) -> EventTypes {
    EventTypes::from_list(Some(types.iter().map(ToString::to_string).collect()))
}

#[tokio::test]
async fn bounds_are_exclusive() {
    let f = ten().await;
    let query = EventQuery {
        after_offset: 3,
        before_offset: Some(7),
        ..EventQuery::default()
    };
    assert_eq!(offsets(&f, query.clone()).await, [4, 5, 6]);
    let newest_first = EventQuery {
        order: Order::Descending,
        limit: 2,
        ..query
    };
    assert_eq!(offsets(&f, newest_first).await, [6, 5]);
}

#[tokio::test]
async fn types_select() {
    let f = ten().await;
    let with = |event_types, order, limit| EventQuery {
        event_types,
        order,
        limit,
        ..EventQuery::default()
    };
    let up = Order::Ascending;
    let down = Order::Descending;
    assert_eq!(offsets(&f, with(only(&["b"]), up, 500)).await, [2, 5, 8]);
    assert_eq!(
        offsets(&f, with(only(&["c", "b", "c"]), up, 3)).await,
        [2, 3, 5]
    );
    assert_eq!(
        offsets(&f, with(only(&["c", "b"]), down, 3)).await,
        [9, 8, 6]
    );
    assert!(offsets(&f, with(only(&["nope"]), up, 500)).await.is_empty());
    assert!(offsets(&f, with(only(&[]), up, 500)).await.is_empty());
    assert_eq!(
        offsets(&f, with(only(&["b", "*"]), up, 500)).await.len(),
        10
    );
    assert_eq!(
        offsets(&f, with(EventTypes::from_list(None), up, 500))
            .await
            .len(),
        10
    );
}

#[tokio::test]
async fn limits_have_their_texts() {
    let f = ten().await;
    for (limit, text) in [
        (0, "getEvents limit must be a positive integer."),
        (501, "getEvents limit must be at most 500."),
    ] {
        let query = EventQuery {
            limit,
            ..EventQuery::default()
        };
        let refused = f.store.get_events(&f.key("/notes"), query).await;
        assert_eq!(refused.unwrap_err().to_string(), text);
    }
}

#[tokio::test]
async fn a_page_says_whether_more_may_follow() {
    let f = Fixture::new();
    let big = || {
        let mut new = event("big");
        new.payload = object(json!({"text": "x".repeat(1000)}));
        new
    };
    f.append("/notes", vec![big(), big(), big()]).await.unwrap();
    let read = async |query| {
        let page = f
            .store
            .get_event_page(&f.key("/notes"), query)
            .await
            .unwrap();
        (page.events.len(), page.more, page.stream_max_offset)
    };
    let all = EventQuery::default();
    assert_eq!(read(all.clone()).await, (3, false, 3));
    let two = EventQuery {
        limit: 2,
        ..all.clone()
    };
    assert_eq!(read(two).await, (2, true, 3));
    let bytes = |max| EventQuery {
        max_bytes: Some(max),
        ..all.clone()
    };
    assert_eq!(read(bytes(1)).await, (1, true, 3));
    assert_eq!(read(bytes(1500)).await, (2, true, 3));
    assert_eq!(read(bytes(1 << 20)).await, (3, false, 3));
}

#[tokio::test]
async fn one_event_by_offset_or_key() {
    let f = Fixture::new();
    let key = f.key("/notes");
    f.append("/notes", vec![event("a").key("k"), event("b")])
        .await
        .unwrap();
    let get = async |which| f.store.get_event(&key, which).await.unwrap();
    assert_eq!(get(EventRef::Offset(2)).await.unwrap().event_type, "b");
    assert_eq!(get(EventRef::Key("k".into())).await.unwrap().offset, 1);
    for which in [
        EventRef::Offset(0),
        EventRef::Offset(3),
        EventRef::Offset(u64::MAX),
    ] {
        assert_eq!(get(which).await, None);
    }
    assert_eq!(get(EventRef::Key("other".into())).await, None);
}

#[tokio::test]
async fn streams_are_listed_by_prefix_and_page() {
    let f = Fixture::new();
    for path in ["/sandboxes/b", "/sandboxes/a", "/sandboxesx", "/notes"] {
        f.append(path, vec![event("a")]).await.unwrap();
    }
    let list = async |listing| {
        let streams = f
            .store
            .list_streams(Some(&f.project), listing)
            .await
            .unwrap();
        streams
            .into_iter()
            .map(|s| s.path.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        list(StreamListing::new("/sandboxes/")).await,
        ["/sandboxes/a", "/sandboxes/b"]
    );
    assert_eq!(
        list(StreamListing::new("")).await,
        [
            "/",
            "/notes",
            "/sandboxes",
            "/sandboxes/a",
            "/sandboxes/b",
            "/sandboxesx"
        ]
    );
    let second = StreamListing {
        after: Some("/sandboxes/a".parse().unwrap()),
        limit: 1,
        ..StreamListing::new("/sandboxes/")
    };
    assert_eq!(list(second).await, ["/sandboxes/b"]);
    let streams = f
        .store
        .list_streams(None, StreamListing::new(""))
        .await
        .unwrap();
    assert_eq!(streams, []);
    let bad = StreamListing {
        limit: 0,
        ..StreamListing::new("")
    };
    let refused = f.store.list_streams(None, bad).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))));
}

#[tokio::test]
async fn the_head_is_the_newest_event() {
    let f = ten().await;
    let head = f.store.head(&f.key("/notes")).await.unwrap().unwrap();
    assert_eq!(head.max_offset, 10);
    let first = f
        .store
        .get_event(&f.key("/notes"), EventRef::Offset(1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(head.created_at, first.created_at);
}
