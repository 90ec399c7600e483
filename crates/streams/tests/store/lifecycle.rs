//! Opening, waiting, closing.

use std::os::unix::fs::PermissionsExt;

use hutch_streams::{
    Append, DATABASE_FILE, Expect, OpenError, Options, RecordId, Store, StoreError, Transaction,
};
use serde_json::json;

use crate::fixture::{Fixture, event, object};

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let f = Fixture::new();
    let id = RecordId::deployment("setting", "a");
    let append = Append::one(&f.project, &"/notes".parse().unwrap(), event("a"));
    let both = Transaction::new()
        .append(append)
        .write(id.clone(), 1, json!(1), Expect::Any);
    f.store.commit(both).await.unwrap();
    f.store.close().await;
    let again = Store::open(f.directory.path()).unwrap();
    assert_eq!(
        again
            .head(&f.key("/notes"))
            .await
            .unwrap()
            .unwrap()
            .max_offset,
        1
    );
    assert!(again.record(&id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_second_store_is_refused_until_the_first_is_closed() {
    let f = Fixture::new();
    let second = Store::open(f.directory.path());
    assert!(matches!(second, Err(OpenError::InUse { .. })));
    f.store.close().await;
    f.store.close().await;
    Store::open(f.directory.path()).unwrap();
    let late = f.append("/notes", vec![event("a")]).await;
    assert!(matches!(late, Err(StoreError::Closed)));
}

#[tokio::test]
async fn what_was_accepted_is_done_before_the_end() {
    let f = Fixture::new();
    let appends: Vec<_> = (0..50)
        .map(|_| {
            let (store, project) = (f.store.clone(), f.project.clone());
            let append = Append::one(&project, &"/notes".parse().unwrap(), event("a"));
            tokio::spawn(async move { store.commit(Transaction::new().append(append)).await })
        })
        .collect();
    // All have entered the queue once each was polled; none has an answer yet
    // that anybody has taken.
    tokio::task::yield_now().await;
    f.store.close().await;
    let mut done = 0;
    for append in appends {
        done += u64::from(append.await.unwrap().is_ok());
    }
    let again = Store::open(f.directory.path()).unwrap();
    let head = again.head(&f.key("/notes")).await.unwrap();
    assert_eq!(head.map_or(0, |head| head.max_offset), done);
    assert!(done > 0);
}

#[tokio::test]
async fn a_dropped_store_frees_its_directory() {
    let directory = tempfile::TempDir::new().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let tail = store.subscribe(hutch_streams::Subscribe::new(
        &hutch_protocol::ProjectId::random(),
        &"/a".parse().unwrap(),
    ));
    let mut tail = tail.unwrap();
    drop(store);
    // The subscription ends when the writer has; then the lock is free.
    assert!(matches!(tail.next().await, Err(StoreError::Closed)));
    Store::open(directory.path()).unwrap();
}

#[tokio::test]
async fn a_small_queue_makes_callers_wait_but_loses_none() {
    let options = Options {
        queue: 1,
        queue_bytes: 4096,
        group: 2,
        readers: 1,
        ..Options::default()
    };
    let f = Fixture::with(options);
    let appends = (0..40).map(|n| {
        let mut new = event("a");
        new.payload = object(json!({"n": n, "t": "x".repeat(3000)}));
        f.append("/notes", vec![new])
    });
    let mut offsets: Vec<u64> = futures_util::future::join_all(appends)
        .await
        .into_iter()
        .map(|made| made.unwrap()[0].event.offset)
        .collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (1..=40).collect::<Vec<_>>());
    let mut large = event("a");
    large.payload = object(json!({"t": "x".repeat(60_000)}));
    f.append("/notes", vec![large])
        .await
        .expect("larger than the queue, but alone");
}

#[test]
fn files_are_the_owners_alone() {
    let directory = tempfile::TempDir::new().unwrap();
    let _store = Store::open(directory.path()).unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
    }
}

#[test]
fn a_missing_directory_is_named() {
    let directory = tempfile::TempDir::new().unwrap();
    let error = Store::open(&directory.path().join("none")).unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
    assert!(!directory.path().join("none").exists());
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join(DATABASE_FILE);
    let text = "this is a text of more than the hundred bytes of a header ".repeat(10);
    std::fs::write(&file, &text).unwrap();
    let error = Store::open(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}
