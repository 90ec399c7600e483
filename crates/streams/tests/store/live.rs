//! Following streams.

use std::task::Poll;
use std::time::Duration;

use hutch_streams::{Batch, EventTypes, Options, StoreError, Subscribe, Subscription};
use serde_json::json;

use crate::fixture::{Fixture, event, object};

const LONG: Duration = Duration::from_secs(60);

fn follow(f: &Fixture, path: &str) -> Subscribe {
    Subscribe::new(&f.project, &path.parse().unwrap())
}

async fn next(tail: &mut Subscription) -> Batch {
    tokio::time::timeout(LONG, tail.next())
        .await
        .unwrap()
        .unwrap()
}

fn offsets(batch: &Batch) -> Vec<u64> {
    batch.events.iter().map(|event| event.offset).collect()
}

#[tokio::test]
async fn durable_events_come_first_and_new_ones_after() {
    let f = Fixture::new();
    f.append("/notes", vec![event("a"), event("b"), event("c")])
        .await
        .unwrap();
    let mut tail = f.store.subscribe(follow(&f, "/notes").after(1)).unwrap();
    let replay = next(&mut tail).await;
    assert_eq!(offsets(&replay), [2, 3]);
    assert_eq!(
        (replay.scanned_after_offset, replay.scanned_through_offset),
        (1, 3)
    );
    assert_eq!(replay.stream_max_offset, 3);
    f.append("/notes", vec![event("d")]).await.unwrap();
    let live = next(&mut tail).await;
    assert_eq!(offsets(&live), [4]);
    assert_eq!(live.scanned_after_offset, 3);
    let shape = serde_json::to_value(&live).unwrap();
    assert_eq!(shape["projectId"], json!(f.project));
    assert_eq!(shape["path"], "/notes");
    assert_eq!(shape["scannedThroughOffset"], 4);
    assert_eq!(shape["streamMaxOffset"], 4);
}

#[tokio::test]
async fn a_stream_may_be_followed_before_it_exists() {
    let f = Fixture::new();
    let mut tail = f.store.subscribe(follow(&f, "/later")).unwrap();
    let mut root = f.store.subscribe(follow(&f, "/")).unwrap();
    let (batch, root_batch, _) = tokio::join!(
        next(&mut tail),
        next(&mut root),
        f.append("/later", vec![event("a")])
    );
    assert_eq!(offsets(&batch), [1]);
    assert_eq!(root_batch.events[0].payload["childPath"], "/later");
}

#[tokio::test]
async fn a_filter_covers_what_it_leaves_out() {
    let f = Fixture::new();
    let types = EventTypes::from_list(Some(vec!["b".into()]));
    let mut tail = f
        .store
        .subscribe(follow(&f, "/notes").types(types))
        .unwrap();
    f.append("/notes", vec![event("a"), event("b"), event("a")])
        .await
        .unwrap();
    let batch = next(&mut tail).await;
    assert_eq!(offsets(&batch), [2]);
    assert_eq!(
        (batch.scanned_after_offset, batch.scanned_through_offset),
        (0, 3)
    );
    f.append("/notes", vec![event("a")]).await.unwrap();
    f.append("/notes", vec![event("b")]).await.unwrap();
    let batch = next(&mut tail).await;
    assert_eq!(offsets(&batch), [5]);
    assert_eq!(
        (batch.scanned_after_offset, batch.scanned_through_offset),
        (3, 5)
    );
}

#[tokio::test]
async fn batches_have_limits() {
    let f = Fixture::new();
    let large = |n: usize| {
        let mut new = event("a");
        new.payload = object(json!({"n": n, "t": "x".repeat(60_000)}));
        new
    };
    for n in 0..3 {
        f.append("/large", (0..15).map(|m| large(n * 15 + m)).collect())
            .await
            .unwrap();
    }
    let mut tail = f.store.subscribe(follow(&f, "/large")).unwrap();
    let first = next(&mut tail).await;
    assert_eq!(first.events.len(), 18, "1 MiB and the event that passes it");
    assert_eq!(first.scanned_through_offset, 18);
    f.append("/small", vec![event("a"); 250]).await.unwrap();
    let mut tail = f.store.subscribe(follow(&f, "/small")).unwrap();
    let mut sizes = Vec::new();
    for _ in 0..3 {
        sizes.push(next(&mut tail).await.events.len());
    }
    assert_eq!(sizes, [100, 100, 50]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_reach_every_subscriber_in_order_without_a_gap() {
    const WRITERS: usize = 8;
    const EACH: usize = 40;
    let f = std::sync::Arc::new(Fixture::new());
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let f = std::sync::Arc::clone(&f);
            tokio::spawn(async move {
                for n in 0..EACH {
                    f.append("/notes", vec![event("a"); 1 + n % 2])
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    let total = (WRITERS * EACH * 3 / 2) as u64;
    let readers: Vec<_> = (0..8)
        .map(|n| {
            let f = std::sync::Arc::clone(&f);
            tokio::spawn(async move {
                let mut tail = f.store.subscribe(follow(&f, "/notes").after(n)).unwrap();
                let mut cursor = n;
                while cursor < total {
                    let batch = next(&mut tail).await;
                    assert_eq!(batch.scanned_after_offset, cursor);
                    for event in &batch.events {
                        cursor += 1;
                        assert_eq!(event.offset, cursor);
                    }
                    assert_eq!(batch.scanned_through_offset, cursor);
                }
            })
        })
        .collect();
    for task in writers.into_iter().chain(readers) {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn dropping_a_waiting_read_loses_nothing() {
    let f = Fixture::new();
    let mut tail = f.store.subscribe(follow(&f, "/notes")).unwrap();
    for n in 1..=20 {
        // Polled once, then dropped at whatever point it had reached.
        assert!(futures_util::poll!(Box::pin(tail.next())).is_pending());
        f.append("/notes", vec![event("a")]).await.unwrap();
        let batch = match futures_util::poll!(Box::pin(tail.next())) {
            Poll::Ready(batch) => batch.unwrap(),
            Poll::Pending => next(&mut tail).await,
        };
        assert_eq!(offsets(&batch), [n]);
    }
}

#[tokio::test]
async fn subscriptions_have_a_limit_and_give_it_back() {
    let f = Fixture::with(Options {
        subscriptions: 1,
        ..Options::default()
    });
    let held = f.store.subscribe(follow(&f, "/a")).unwrap();
    let refused = f.store.subscribe(follow(&f, "/b"));
    assert!(matches!(
        refused,
        Err(StoreError::TooManySubscriptions { limit: 1 })
    ));
    drop(held);
    f.store.subscribe(follow(&f, "/b")).unwrap();
}

#[tokio::test]
async fn an_event_can_be_awaited() {
    let f = Fixture::new();
    f.append("/notes", vec![event("a")]).await.unwrap();
    let wanted = || follow(&f, "/notes").types(EventTypes::Only(vec!["b".into()]));
    let (found, _) = tokio::join!(f.store.wait_for_event(wanted(), LONG), async {
        f.append("/notes", vec![event("c"), event("b"), event("b")])
            .await
            .unwrap()
    });
    assert_eq!(found.unwrap().offset, 3);
    let late = f
        .store
        .wait_for_event(wanted().after(4), Duration::ZERO)
        .await
        .unwrap_err();
    let text = late.to_string();
    assert!(text.starts_with("stream-wait-timeout: "), "{text}");
    assert!(
        text.contains("Timed out waiting for stream event"),
        "{text}"
    );
}

#[tokio::test]
async fn closing_the_store_ends_a_subscription_after_its_last_event() {
    let f = Fixture::new();
    let mut tail = f.store.subscribe(follow(&f, "/notes")).unwrap();
    f.append("/notes", vec![event("a")]).await.unwrap();
    f.store.close().await;
    assert_eq!(offsets(&next(&mut tail).await), [1]);
    assert!(matches!(tail.next().await, Err(StoreError::Closed)));
    assert!(matches!(
        f.store.subscribe(follow(&f, "/notes")),
        Err(StoreError::Closed)
    ));
}
