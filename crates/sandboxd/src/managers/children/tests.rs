//! The starter, the reaper and tree ends, in one ordinary process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::start::{Launch, Stage, Starter, StarterSettings};
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::CString;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn children() -> Arc<Children> {
    let starter = Starter::fork(&StarterSettings::default()).unwrap();
    Children::new(ChildrenSettings {
        starter,
        groups: None,
        attach: Vec::new(),
        scope: Scope::Started,
    })
    .unwrap()
}

fn shell(text: &str) -> Launch {
    Launch {
        call: 0,
        argv: [
            c"bash".to_owned(),
            c"-c".to_owned(),
            CString::new(text).unwrap(),
        ]
        .into(),
        env: vec![c"PATH=/usr/bin:/bin".into()],
        cwd: c"/".into(),
        script: false,
    }
}

fn pipes() -> (Stdio, OwnedFd, OwnedFd) {
    let (out, stdout) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let (err, stderr) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    (
        Stdio {
            stdin: None,
            stdout,
            stderr,
            script: None,
        },
        out,
        err,
    )
}

fn text(descriptor: OwnedFd) -> String {
    let mut text = String::new();
    std::fs::File::from(descriptor)
        .read_to_string(&mut text)
        .unwrap();
    text
}

async fn run(children: &Children, launch: Launch) -> (Exit, String, String) {
    let (stdio, out, err) = pipes();
    let mut child = children.start(launch, stdio).await.unwrap();
    let out = tokio::task::spawn_blocking(|| (text(out), text(err)));
    let exit = child.wait().await;
    let (out, err) = out.await.unwrap();
    (exit, out, err)
}

fn alive(pattern: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.trim() == pattern
    })
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn statuses_are_those_of_the_process() {
    let children = children();
    assert_eq!(run(&children, shell("exit 7")).await.0, Exit::Code(7));
    assert_eq!(run(&children, shell("kill -9 $$")).await.0, Exit::Signal(9));
    let (exit, out, err) = run(&children, shell("echo out; echo err >&2")).await;
    assert_eq!(
        (exit, out.as_str(), err.as_str()),
        (Exit::Code(0), "out\n", "err\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_status_is_lost_when_many_end_at_once() {
    let children = children();
    let all = (0..50).map(|_| {
        let children = Arc::clone(&children);
        tokio::spawn(async move { run(&children, shell("exit 42")).await.0 })
    });
    for exit in all.collect::<Vec<_>>() {
        assert_eq!(exit.await.unwrap(), Exit::Code(42));
    }
    assert_eq!(children.running(), 0);
}

#[tokio::test]
async fn nothing_of_ours_leaks_into_a_command() {
    let children = children();
    let (_, out, err) = run(
        &children,
        shell("ls /proc/self/fd | wc -l; grep -E '^Sig(Ign|Blk)' /proc/self/status; cat; env; pwd; ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo leader"),
    )
    .await;
    // `ls` itself has one more open: the directory.
    assert_eq!(
        out,
        "4\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nPWD=/\nSHLVL=1\nPATH=/usr/bin:/bin\n_=/usr/bin/env\n/\nleader\n"
    );
    assert_eq!(err, "");
}

#[tokio::test]
async fn a_pipeline_dies_of_sigpipe_quietly() {
    let children = children();
    let (_, out, err) = run(&children, shell("yes | head -n1; echo ${PIPESTATUS[0]}")).await;
    assert_eq!((out.as_str(), err.as_str()), ("y\n141\n", ""));
}

#[tokio::test]
async fn failures_say_where_and_why() {
    let children = children();
    let mut nowhere = shell("true");
    nowhere.cwd = c"/nowhere".into();
    let mut nothing = shell("true");
    nothing.argv = vec![c"no-such-program".into()];
    let mut directory = shell("true");
    directory.argv = vec![c"/etc".into()];
    for (launch, stage, errno) in [
        (nowhere, Stage::Directory, libc::ENOENT),
        (nothing, Stage::Exec, libc::ENOENT),
        (directory, Stage::Exec, libc::EACCES),
    ] {
        let error = children.start(launch, pipes().0).await.unwrap_err();
        let errno = rustix::io::Errno::from_raw_os_error(errno);
        assert_eq!(error, StartError::Failed { stage, errno });
    }
    assert_eq!(run(&children, shell("exit 3")).await.0, Exit::Code(3));
}

#[tokio::test]
async fn a_large_environment_travels_in_a_file() {
    let children = children();
    let mut launch = shell("printf %s \"${#BIG}\"");
    for _ in 0..2 {
        launch
            .env
            .push(CString::new(format!("BIG={}", "x".repeat(100_000))).unwrap());
    }
    assert_eq!(run(&children, launch).await.1, "100000");
}

#[tokio::test]
async fn ending_a_tree_reaches_other_sessions_and_those_who_ignore_term() {
    let children = children();
    let (stdio, out, _err) = pipes();
    let command = "trap '' TERM; (setsid sleep 60.01 &); setsid bash -c 'trap \"\" TERM; sleep 60.02; sleep 60.03' & echo go; wait; sleep 60.04";
    let child = children.start(shell(command), stdio).await.unwrap();
    tokio::task::spawn_blocking(move || {
        let mut go = [0; 3];
        std::fs::File::from(out).read_exact(&mut go).unwrap();
    })
    .await
    .unwrap();
    until("the sleepers start", || {
        alive("sleep 60.01") && alive("sleep 60.02")
    })
    .await;
    child
        .tree()
        .end(libc::SIGTERM, Duration::from_millis(100))
        .await
        .unwrap();
    for number in 1..5 {
        assert!(!alive(&format!("sleep 60.0{number}")));
    }
}

#[tokio::test]
async fn a_dropped_child_takes_its_tree_along_and_a_released_one_does_not() {
    let children = children();
    let child = children
        .start(shell("sleep 61.01 & exec sleep 61.02"), pipes().0)
        .await
        .unwrap();
    until("both start", || {
        alive("sleep 61.01") && alive("sleep 61.02")
    })
    .await;
    drop(child);
    children.cleaned_up().await;
    assert!(!alive("sleep 61.01") && !alive("sleep 61.02"));

    let mut child = children
        .start(shell("sleep 61.03 &"), pipes().0)
        .await
        .unwrap();
    let tree = child.tree();
    assert_eq!(child.wait().await, Exit::Code(0));
    child.release();
    until("the sleeper starts", || alive("sleep 61.03")).await;
    tree.end(libc::SIGKILL, Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_start_whose_caller_is_gone_is_undone() {
    let children = children();
    let mut start = Box::pin(children.start(shell("sleep 62.01"), pipes().0));
    // Polled once, the request is sent; then the caller goes.
    assert!(futures_util::poll!(&mut start).is_pending());
    drop(start);
    // Requests are served in order: after this one the first has been answered.
    assert_eq!(run(&children, shell("exit 0")).await.0, Exit::Code(0));
    children.cleaned_up().await;
    assert!(!alive("sleep 62.01"));
    assert_eq!(children.running(), 0);
}

#[tokio::test]
async fn a_starter_that_is_killed_or_stopped_holds_nothing_up() {
    let starter = Starter::fork(&StarterSettings::default()).unwrap();
    let pid = starter.pid;
    let children = Children::new(ChildrenSettings {
        starter,
        groups: None,
        attach: Vec::new(),
        scope: Scope::Started,
    })
    .unwrap();
    use rustix::process::{Signal, kill_process};
    kill_process(pid, Signal::STOP).unwrap();
    assert_eq!(run(&children, shell("exit 3")).await.0, Exit::Code(3));
    kill_process(pid, Signal::KILL).unwrap();
    for _ in 0..3 {
        let (exit, out, _) = run(&children, shell("ls /proc/self/fd; exit 4")).await;
        assert_eq!(exit, Exit::Code(4));
        // The three streams and that of the folder: nothing of the daemon's leaked.
        assert_eq!(out.lines().count(), 4, "{out}");
    }
    assert_eq!(children.running(), 0);
}

#[tokio::test]
async fn starters_that_die_at_once_are_told_instead_of_waited_for() {
    let children = children();
    let killing = async {
        loop {
            let starter = children.reaper.starter();
            let _ = rustix::process::kill_process(starter, rustix::process::Signal::KILL);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let told = async {
        loop {
            match children.start(shell("true"), pipes().0).await {
                Ok(child) => drop(child),
                Err(StartError::Killed) => {}
                Err(error) => break error,
            }
        }
    };
    let error = tokio::select! {
        () = killing => panic!("it ended"),
        error = told => error,
    };
    assert_eq!(error, StartError::KilledOften);
    // Once nothing kills it any more, all is well.
    while children.start(shell("true"), pipes().0).await.is_err() {}
}
