//! How long `exec("true")` takes at the daemon's socket, beside a bare `bash -c true`
//! started by this process, in one run: `cargo bench -p sandboxd`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

#[path = "../tests/rpc/sandbox.rs"]
mod sandbox;

use sandbox::Sandbox;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

const ROUNDS: usize = 500;

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (ours, bare) = runtime.block_on(measure());
    let mut out = std::io::stdout();
    for (name, mut times) in [("exec", ours), ("bash", bare)] {
        times.sort();
        let at = |part: usize| times[times.len() * part / 100];
        writeln!(
            out,
            "{name}  p50 {:?}  p95 {:?}  p99 {:?}",
            at(50),
            at(95),
            at(99)
        )
        .unwrap();
    }
}

async fn measure() -> (Vec<Duration>, Vec<Duration>) {
    let sandbox = Sandbox::start().await;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        assert_eq!(sandbox.exec("true").await.code, 0);
        ours.push(started.elapsed());
        let started = Instant::now();
        let run = tokio::task::spawn_blocking(|| {
            Command::new("/usr/bin/bash")
                .args(["-c", "true"])
                .output()
                .unwrap()
        });
        assert!(run.await.unwrap().status.success());
        bare.push(started.elapsed());
    }
    (ours, bare)
}
