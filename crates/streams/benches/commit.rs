//! Commits per second, one caller at a time and 64 at once. The difference is
//! what sharing an fsync brings. Run with `cargo bench -p hutch-streams`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a bench prints its numbers"
)]

use std::time::{Duration, Instant};

use hutch_protocol::ProjectId;
use hutch_streams::{Append, Expect, NewEvent, RecordId, Store, Subscribe, Transaction};
use serde_json::{Map, json};

const TIME: Duration = Duration::from_secs(3);

fn transaction(project: &ProjectId, caller: usize) -> Transaction {
    let mut payload = Map::new();
    payload.insert("text".into(), json!("x".repeat(100)));
    let path = format!("/bench/{caller}").parse().unwrap();
    let id = RecordId::new("bench", project, caller.to_string());
    Transaction::new()
        .append(Append::one(
            project,
            &path,
            NewEvent::new("bench/event", payload),
        ))
        .write(id, 1, json!({"caller": caller}), Expect::Any)
}

async fn run(callers: usize) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let project = ProjectId::random();
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let (store, project) = (store.clone(), project.clone());
            tokio::spawn(async move {
                let (start, mut times) = (Instant::now(), Vec::new());
                while start.elapsed() < TIME {
                    let one = Instant::now();
                    store.commit(transaction(&project, caller)).await.unwrap();
                    times.push(one.elapsed());
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{callers:>3} callers: {:>7.0} commits/s, p50 {:?}, p95 {:?}, p99 {:?}",
        times.len() as f64 / TIME.as_secs_f64(),
        at(0.5),
        at(0.95),
        at(0.99)
    );
}

/// From the commit's call to the event's arrival at a subscriber.
async fn tail() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let project = ProjectId::random();
    let path = "/bench/0".parse().unwrap();
    let mut tail = store.subscribe(Subscribe::new(&project, &path)).unwrap();
    let mut times = Vec::new();
    for _ in 0..1000 {
        let start = Instant::now();
        let (committed, batch) = tokio::join!(store.commit(transaction(&project, 0)), tail.next());
        committed.unwrap();
        batch.unwrap();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!(
        "commit to subscriber: p50 {:?}, p99 {:?}",
        times[500], times[990]
    );
}

/// What the disk itself takes.
fn fsync() {
    use std::io::Write as _;
    let mut file = tempfile::tempfile().unwrap();
    let mut times = Vec::new();
    for _ in 0..500 {
        file.write_all(&[0; 8192]).unwrap();
        let start = Instant::now();
        file.sync_data().unwrap();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!(
        "fdatasync of 8 KiB: p50 {:?}, p99 {:?}",
        times[250], times[495]
    );
}

fn main() {
    // Test runners call benches with arguments to list them; there are none.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    fsync();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for callers in [1, 8, 64] {
            run(callers).await;
        }
        tail().await;
    });
}
