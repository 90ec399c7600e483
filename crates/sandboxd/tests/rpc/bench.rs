//! How long a command takes, beside the bare shell.

use crate::sandbox::Sandbox;
use std::process::Command;
use std::time::{Duration, Instant};

/// Prints medians; run with `--run-ignored all --no-capture` on a release build.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, not a check"]
#[allow(clippy::print_stdout, reason = "its result is what it prints")]
async fn exec_true_beside_bash() {
    const ROUNDS: usize = 300;
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
    let at = |times: &mut Vec<Duration>, part: usize| {
        times.sort();
        times[times.len() * part / 100]
    };
    println!(
        "exec  p50 {:?} p95 {:?}",
        at(&mut ours, 50),
        at(&mut ours, 95)
    );
    println!(
        "bash  p50 {:?} p95 {:?}",
        at(&mut bare, 50),
        at(&mut bare, 95)
    );
}
