//! Databases of older and newer versions.

use std::path::Path;

use hutch_protocol::ProjectId;
use hutch_streams::{DATABASE_FILE, EventQuery, EventRef, OpenError, RecordId, Store, StreamKey};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Written by version 1; never to be changed.
const VERSION_1: &str = include_str!("../fixtures/v1.sql");
const PROJECT: &str = "prj_0123456789abcdef0123456789abcdef";

fn database(sql: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    let connection = Connection::open(directory.path().join(DATABASE_FILE)).unwrap();
    connection.execute_batch(sql).unwrap();
    directory
}

fn version(directory: &Path) -> i64 {
    let connection = Connection::open(directory.join(DATABASE_FILE)).unwrap();
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

/// The tables and indexes, as SQLite wrote them down.
fn schema(directory: &Path) -> Vec<String> {
    let connection = Connection::open(directory.join(DATABASE_FILE)).unwrap();
    let mut statement = connection
        .prepare("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name")
        .unwrap();
    let rows = statement
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap();
    // White space differs between a fixture and the source of a migration.
    rows.map(|sql| {
        sql.unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    })
    .collect()
}

#[tokio::test]
async fn version_1_is_read_and_continued() {
    let directory = database(VERSION_1);
    let store = Store::open(directory.path()).unwrap();
    let project: ProjectId = PROJECT.parse().unwrap();
    let stream = StreamKey::new(&project, &"/sandboxes/a".parse().unwrap());
    let events = store
        .get_events(&stream, EventQuery::default())
        .await
        .unwrap();
    let expected: Value = json!([
        {"offset": 1, "type": "sandbox/created", "payload": {"config": {"instanceType": "lite"}},
         "idempotencyKey": "sandbox/created:a", "createdAt": "2026-11-30T20:28:54.123Z", "path": "/sandboxes/a"},
        {"offset": 2, "type": "sandbox/started", "payload": {}, "metadata": {"by": "test"},
         "createdAt": "2026-11-30T20:28:55.000Z", "path": "/sandboxes/a"},
    ]);
    assert_eq!(serde_json::to_value(&events).unwrap(), expected);
    let key = EventRef::Key("sandbox/created:a".into());
    assert_eq!(
        store.get_event(&stream, key).await.unwrap().as_ref(),
        events.first()
    );
    let record = store
        .record(&RecordId::new("sandbox", &project, "a"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (record.revision, record.version, record.json),
        (7, 1, json!({"state": "running"}))
    );

    let new = hutch_streams::NewEvent::new("sandbox/stopped", Default::default());
    let append = hutch_streams::Append::one(&project, &stream.path, new);
    let write = hutch_streams::Transaction::new().append(append).write(
        record.id,
        1,
        json!({}),
        hutch_streams::Expect::Revision(7),
    );
    let outcome = store.commit(write).await.unwrap();
    assert_eq!(outcome.appends[0][0].event.offset, 3);
    assert_eq!(outcome.records[0].revision, 8);
}

#[tokio::test]
async fn an_old_database_ends_up_like_a_new_one() {
    let old = database(VERSION_1);
    let new = TempDir::new().unwrap();
    for directory in [&old, &new] {
        Store::open(directory.path()).unwrap().close().await;
    }
    assert_eq!(version(old.path()), version(new.path()));
    assert_eq!(schema(old.path()), schema(new.path()));
}

#[test]
fn a_newer_version_is_refused_and_left_alone() {
    let directory = database(VERSION_1);
    let connection = Connection::open(directory.path().join(DATABASE_FILE)).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = std::fs::read(directory.path().join(DATABASE_FILE)).unwrap();
    let error = Store::open(directory.path()).unwrap_err();
    assert!(
        matches!(error, OpenError::NewerVersion { found: 99, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("start a newer hutch"), "{error}");
    assert_eq!(
        std::fs::read(directory.path().join(DATABASE_FILE)).unwrap(),
        before
    );
}

#[test]
fn a_database_of_another_program_is_refused() {
    let directory = database("CREATE TABLE mine (a); PRAGMA user_version = 1;");
    let error = Store::open(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
}
