//! The process dies at any moment; what was answered is there afterwards.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hutch_protocol::ProjectId;
use hutch_streams::{
    Append, DATABASE_FILE, EventQuery, Expect, NewEvent, RecordId, Scope, Store, StreamKey,
    Transaction,
};
use serde_json::json;

use crate::fixture::object;

const PROJECT: &str = "prj_0123456789abcdef0123456789abcdef";
const DIRECTORY: &str = "HUTCH_CRASH_TEST_DIRECTORY";
const CALLERS: usize = 8;

fn project() -> ProjectId {
    PROJECT.parse().unwrap()
}

/// One transaction of a caller: an event and the record that counts it.
fn transaction(caller: usize, count: u64) -> Transaction {
    let path = format!("/callers/{caller}").parse().unwrap();
    let event = NewEvent::new("crash/counted", object(json!({"count": count})));
    Transaction::new()
        .append(Append::one(&project(), &path, event.expect_offset(count)))
        .write(
            RecordId::new("caller", &project(), caller.to_string()),
            1,
            json!(count),
            Expect::Any,
        )
}

/// The process that is killed: eight callers commit in a loop and write down
/// each answer.
async fn commit_until_killed(directory: &Path) {
    let store = Store::open(directory).unwrap();
    let callers = (0..CALLERS).map(|caller| {
        let store = store.clone();
        tokio::spawn(async move {
            let id = RecordId::new("caller", &project(), caller.to_string());
            let before = store.record(&id).await.unwrap();
            let mut count = before.map_or(0, |record| record.json.as_u64().unwrap());
            loop {
                count += 1;
                store.commit(transaction(caller, count)).await.unwrap();
                let line = format!("\nanswered {caller} {count}\n");
                std::io::stdout().write_all(line.as_bytes()).unwrap();
            }
        })
    });
    futures_util::future::join_all(callers).await;
}

/// This test program again, as the process to be killed.
fn start(directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crash::what_was_answered_survives_kill_9",
            "--nocapture",
        ])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn read_answer(line: &str) -> Option<(usize, u64)> {
    let mut words = line.strip_prefix("answered ")?.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Kills the child after a random number of answers; gives the last count that
/// each caller was answered.
fn run_and_kill(directory: &Path) -> HashMap<usize, u64> {
    let random = std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish();
    let mut child = start(directory);
    let mut left = random % 400;
    let mut answered = HashMap::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines.by_ref() {
        if let Some((caller, count)) = read_answer(&line.unwrap()) {
            answered.insert(caller, count);
            if left == 0 {
                break;
            }
            left -= 1;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had written before it died is still in the pipe.
    for line in lines {
        if let Some((caller, count)) = read_answer(&line.unwrap()) {
            answered.insert(caller, count);
        }
    }
    answered
}

/// Every caller's record agrees with its stream, and nothing is half there.
async fn assert_consistent(store: &Store) -> HashMap<usize, u64> {
    let records = store
        .records("caller", Scope::Project(&project()))
        .await
        .unwrap();
    let mut counts = HashMap::new();
    for record in records {
        let count = record.json.as_u64().unwrap();
        let path = format!("/callers/{}", record.id.key).parse().unwrap();
        let stream = StreamKey::new(&project(), &path);
        let head = store.head(&stream).await.unwrap().unwrap();
        assert_eq!(head.max_offset, count, "record and events of {path}");
        let query = EventQuery {
            after_offset: count.saturating_sub(500),
            ..EventQuery::default()
        };
        for event in store.get_events(&stream, query).await.unwrap() {
            assert_eq!(event.payload["count"], event.offset);
        }
        counts.insert(record.id.key.parse().unwrap(), count);
    }
    let announced = store
        .head(&StreamKey::new(&project(), &"/callers".parse().unwrap()))
        .await
        .unwrap()
        .map_or(0, |head| head.max_offset);
    assert_eq!(announced, counts.len() as u64, "one announcement a stream");
    counts
}

#[tokio::test]
async fn what_was_answered_survives_kill_9() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return commit_until_killed(Path::new(&directory)).await;
    }
    let directory = tempfile::TempDir::new().unwrap();
    for _ in 0..10 {
        let answered = run_and_kill(directory.path());
        let store = Store::open(directory.path()).unwrap();
        let counts = assert_consistent(&store).await;
        for (caller, answered) in answered {
            // One more may be committed than was answered, as each caller
            // waits for one at a time.
            let stored = counts[&caller];
            assert!(
                stored == answered || stored == answered + 1,
                "{stored}, answered {answered}"
            );
        }
        store.close().await;
    }
}

#[tokio::test]
async fn a_log_cut_anywhere_holds_whole_transactions() {
    let directory = tempfile::TempDir::new().unwrap();
    let store = Store::open(directory.path()).unwrap();
    for count in 1..=12 {
        store.commit(transaction(0, count)).await.unwrap();
        store.commit(transaction(1, count)).await.unwrap();
    }
    let log_name = format!("{DATABASE_FILE}-wal");
    let database = std::fs::read(directory.path().join(DATABASE_FILE)).unwrap();
    let log = std::fs::read(directory.path().join(&log_name)).unwrap();
    let mut last = 0;
    let step = (log.len() / 60).max(1);
    for length in (0..=log.len()).step_by(step).chain([log.len()]) {
        let copy = tempfile::TempDir::new().unwrap();
        std::fs::write(copy.path().join(DATABASE_FILE), &database).unwrap();
        std::fs::write(copy.path().join(&log_name), &log[..length]).unwrap();
        let cut = Store::open(copy.path()).unwrap();
        let counts = assert_consistent(&cut).await;
        let total: u64 = counts.values().sum();
        assert!(total >= last, "a longer log holds no less");
        last = total;
    }
    assert_eq!(last, 24);
}
