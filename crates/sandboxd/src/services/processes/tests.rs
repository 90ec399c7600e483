//! Background processes as callers see them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::services::commands::Request;
use crate::services::testing::{Bench, alive, until};
use hutch_protocol::process::ProcessStatus;
use std::time::{Duration, Instant};

fn process(command: &str) -> NewProcess {
    NewProcess {
        request: Request::shell(command),
        id: None,
        hold_awake: false,
    }
}

#[tokio::test]
async fn the_output_of_a_fast_process_is_there_when_it_has_ended() {
    let bench = Bench::new();
    for _ in 0..100 {
        let record = bench
            .processes
            .start(process("echo fast; echo err >&2"))
            .await
            .unwrap();
        assert!(record.pid > 0);
        assert_eq!(bench.processes.wait(&record.id, None).await.unwrap(), 0);
        let logs = bench.processes.logs(&record.id).unwrap();
        assert_eq!(
            (logs.stdout.content.as_str(), logs.stderr.content.as_str()),
            ("fast\n", "err\n")
        );
        assert_eq!(record.state().status, ProcessStatus::Completed);
    }
}

#[tokio::test]
async fn killing_ends_the_whole_tree_before_it_says_so() {
    let bench = Bench::new();
    let record = bench
        .processes
        .start(process("sh -c 'sleep 301.5 & exec sleep 302.5'"))
        .await
        .unwrap();
    until("both start", || {
        alive("sleep 301.5") && alive("sleep 302.5")
    })
    .await;
    bench
        .processes
        .kill(&record.id, libc::SIGTERM)
        .await
        .unwrap();
    assert!(!alive("sleep 301.5") && !alive("sleep 302.5"));
    let state = record.state();
    assert_eq!(
        (state.status, state.exit_code),
        (ProcessStatus::Killed, Some(143))
    );
    let again = bench
        .processes
        .kill(&record.id, libc::SIGTERM)
        .await
        .unwrap_err();
    assert_eq!(again.code, ErrorCode::CommandNotFound);
    let unknown = bench
        .processes
        .kill("nobody", libc::SIGTERM)
        .await
        .unwrap_err();
    assert_eq!(unknown.code, ErrorCode::ProcessNotFound);
}

#[tokio::test]
async fn who_ignores_term_is_gone_within_the_grace_and_a_second() {
    let bench = Bench::new();
    let command = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let record = bench.processes.start(process(command)).await.unwrap();
    until("it is ready", || {
        !bench
            .processes
            .logs(&record.id)
            .unwrap()
            .stdout
            .content
            .is_empty()
    })
    .await;
    let started = Instant::now();
    bench
        .processes
        .kill(&record.id, libc::SIGTERM)
        .await
        .unwrap();
    assert!(started.elapsed() < Duration::from_secs(6));
    assert_eq!(record.state().exit_code, Some(137));
}

#[tokio::test]
async fn the_status_is_that_of_the_wait_and_no_child_left_behind_delays_it() {
    let bench = Bench::new();
    let record = bench
        .processes
        .start(process("sleep 66.01 & exit 4"))
        .await
        .unwrap();
    let code = bench
        .processes
        .wait(&record.id, Some(Duration::from_secs(3)))
        .await
        .unwrap();
    assert_eq!((code, record.state().status), (4, ProcessStatus::Failed));
    bench.exec("pkill -xf 'sleep 66.01'").await;
}

#[tokio::test]
async fn other_signals_are_delivered_and_waits_have_limits() {
    let bench = Bench::new();
    let command = "trap 'echo usr1; exit 9' USR1; echo ready; while :; do sleep 0.02; done";
    let record = bench.processes.start(process(command)).await.unwrap();
    let error = bench
        .processes
        .wait(&record.id, Some(Duration::from_millis(1)))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ProcessReadyTimeout);
    until("it is ready", || {
        !bench
            .processes
            .logs(&record.id)
            .unwrap()
            .stdout
            .content
            .is_empty()
    })
    .await;
    bench
        .processes
        .kill(&record.id, libc::SIGUSR1)
        .await
        .unwrap();
    assert_eq!(bench.processes.wait(&record.id, None).await.unwrap(), 9);
    assert!(
        bench
            .processes
            .logs(&record.id)
            .unwrap()
            .stdout
            .content
            .ends_with("usr1\n")
    );
}

#[tokio::test]
async fn all_that_run_can_be_killed_and_ids_are_taken_while_they_run() {
    let bench = Bench::new();
    let named = || NewProcess {
        id: Some("web".into()),
        ..process("sleep 67.01")
    };
    bench.processes.start(named()).await.unwrap();
    let taken = bench.processes.start(named()).await.unwrap_err();
    assert_eq!(taken.code, ErrorCode::ResourceBusy);
    bench.processes.start(process("sleep 67.02")).await.unwrap();
    assert_eq!(bench.processes.kill_all().await.unwrap(), 2);
    assert!(!alive("sleep 67.01") && !alive("sleep 67.02"));
    bench.processes.start(named()).await.unwrap();
    assert_eq!(
        bench
            .processes
            .all()
            .iter()
            .filter(|record| record.id == "web")
            .count(),
        1
    );
    assert_eq!(bench.processes.kill_all().await.unwrap(), 1);
}

#[tokio::test]
async fn of_much_output_the_end_is_kept() {
    let bench = Bench::new();
    let command = "head -c 12000000 /dev/zero | tr '\\0' x; echo END";
    let record = bench.processes.start(process(command)).await.unwrap();
    bench.processes.wait(&record.id, None).await.unwrap();
    let logs = bench.processes.logs(&record.id).unwrap();
    assert!(logs.stdout.truncated && logs.stdout.content.ends_with("xEND\n"));
    assert!((7 << 20..=8 << 20).contains(&logs.stdout.content.len()));
}
