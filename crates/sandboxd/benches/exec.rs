//! How long `exec("true")` takes at the daemon's socket, beside a bare `bash -c true`
//! started by this process, in one run: `cargo bench -p sandboxd`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

#[path = "../tests/rpc/sandbox.rs"]
mod sandbox;

use sandbox::{Groups, Sandbox};
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

const ROUNDS: usize = 500;

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let times = runtime.block_on(measure());
    let mut out = std::io::stdout();
    for (name, mut times) in ["exec, in a group", "exec, without", "bash"]
        .into_iter()
        .zip(times)
    {
        times.sort();
        let at = |part: usize| times[times.len() * part / 100];
        writeln!(
            out,
            "{name:16}  p50 {:?}  p95 {:?}  p99 {:?}",
            at(50),
            at(95),
            at(99)
        )
        .unwrap();
    }
}

/// Rounds of ours with groups, ours without, and bash.
async fn measure() -> [Vec<Duration>; 3] {
    let grouped = Sandbox::start_with(Groups::Available).await;
    let plain = Sandbox::start_with(Groups::None).await;
    let [mut ours, mut descent, mut bare] = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (sandbox, times) in [(&grouped, &mut ours), (&plain, &mut descent)] {
            let started = Instant::now();
            assert_eq!(sandbox.exec("true").await.code, 0);
            times.push(started.elapsed());
        }
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
    [ours, descent, bare]
}
