//! What being PID 1 asks for.

use crate::sandbox::{Groups, Sandbox, ok};
use futures_util::future::join_all;
use rustix::process::{Pid, Signal};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_reaped_and_no_status_is_lost() {
    let sandbox = Sandbox::start().await;
    for _ in 0..15 {
        let some = join_all((0..20).map(|_| sandbox.exec("sh -c 'sleep 0.05 &'"))).await;
        assert!(some.iter().all(|outcome| outcome.code == 0));
    }
    sandbox.until("! pgrep -x sleep").await;
    assert_eq!(
        sandbox.exec("ps -e -o state= | grep -c '^Z'").await.out,
        "0\n"
    );
    let codes = join_all((0..50).map(|_| sandbox.exec("exit 42"))).await;
    assert!(codes.iter().all(|outcome| outcome.code == 42), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_start_with_plain_signals_and_nothing_of_ours() {
    let sandbox = Sandbox::start().await;
    assert_eq!(
        sandbox.exec("yes | head -n1; echo ${PIPESTATUS[0]}").await,
        ok("y\n141\n")
    );
    let out = sandbox
        .exec("grep -E 'Sig(Ign|Blk)' /proc/self/status")
        .await
        .out;
    assert_eq!(
        out,
        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
    );
    assert_eq!(
        sandbox.exec("ls /proc/self/fd | tr '\\n' ' '").await,
        ok("0 1 2 3 ")
    );
    assert_eq!(sandbox.exec("env | grep -c SANDBOXD").await.out, "0\n");
    assert_eq!(
        sandbox
            .exec("[ $(cat /proc/self/oom_score_adj) = 500 ] && echo raised")
            .await,
        ok("raised\n")
    );
    assert_eq!(
        sandbox
            .exec("umask; ps -o sid= $$ | tr -d ' ' | grep -qx $$ && echo leader")
            .await,
        ok("0022\nleader\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_has_a_group_that_goes_with_it() {
    let sandbox = Sandbox::start().await;
    let own = sandbox.exec("grep ^0:: /proc/self/cgroup").await.out;
    if !own.contains("sandboxd-test-") {
        return; // This machine has no control groups of version 2.
    }
    let other = sandbox.exec("grep ^0:: /proc/self/cgroup").await.out;
    assert_ne!(own, other);
    let group = other
        .trim()
        .rsplit_once('/')
        .unwrap()
        .0
        .trim_start_matches("0::")
        .to_owned();
    sandbox.exec("true").await;
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let root = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some("cgroup2"))
        .unwrap();
    let path = format!("{}{group}", root.split(' ').nth(1).unwrap());
    // A group is removed off the command's path, so after its answer.
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let left = std::fs::read_dir(&path)
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .count();
        if left <= 1 {
            break;
        }
        assert!(Instant::now() < deadline, "{left} groups are left");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_term_is_forwarded_and_ends_the_daemon() {
    let sandbox = Sandbox::start_with(Groups::None).await;
    let mark = sandbox.path("mark");
    let command = "trap 'echo told > mark; exit' TERM; echo > ready; while :; do sleep 0.02; done";
    sandbox
        .call("sandbox.startProcess", vec![command.into()])
        .await
        .unwrap();
    sandbox.until("test -e ready").await;
    let daemon = Pid::from_raw(sandbox.daemon()).unwrap();
    rustix::process::kill_process(daemon, Signal::TERM).unwrap();
    gone(daemon).await;
    assert_eq!(std::fs::read_to_string(mark).unwrap(), "told\n");
}

/// A filter that refuses mkdir and mkdirat with EPERM and allows all else.
fn filter() -> Vec<u8> {
    const PROGRAM: [(u16, u8, u8, u32); 5] = [
        (0x20, 0, 0, 0),
        (0x15, 2, 0, 83),
        (0x15, 1, 0, 258),
        (0x06, 0, 0, 0x7fff_0000),
        (0x06, 0, 0, 0x0005_0001),
    ];
    let record = |(code, jt, jf, k): (u16, u8, u8, u32)| {
        [&code.to_ne_bytes()[..], &[jt, jf], &k.to_ne_bytes()].concat()
    };
    PROGRAM.into_iter().flat_map(record).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_under_their_filter_and_the_daemon_does_not() {
    let sandbox = Sandbox::start_filtered(Groups::Available, Some(&filter())).await;
    let refused = sandbox.exec("mkdir d").await;
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("Operation not permitted"));
    let filters = sandbox.exec("grep Seccomp: /proc/self/status").await;
    assert_eq!(filters, ok("Seccomp:\t2\n"));
    sandbox
        .call("sandbox.mkdir", vec!["d".into()])
        .await
        .unwrap();
    let open = sandbox.exec("test -d d && ls /proc/self/fd | wc -l").await;
    assert_eq!(open, ok("4\n"));
}

/// PID 1 cannot be killed from inside; the starter can, and is forked again.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_signals_everything_takes_nothing_but_commands_along() {
    let sandbox = Sandbox::start_filtered(Groups::Available, Some(&filter())).await;
    for signal in ["STOP", "KILL", "TERM", "HUP"] {
        let command = format!("kill -{signal} -1; echo sent");
        // Refused when the starter died before it could say that it had started it.
        if let Ok(sent) = sandbox.call("sandbox.exec", vec![command.into()]).await {
            let out = sent.get("stdout").and_then(capnweb::Value::as_str);
            assert_eq!(out, Some("sent\n"));
        }
        let again = sandbox.exec("grep Seccomp: /proc/self/status").await;
        assert_eq!(again, ok("Seccomp:\t2\n"), "{signal}");
    }
}
async fn gone(process: Pid) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while rustix::process::test_kill_process(process).is_ok() {
        assert!(Instant::now() < deadline, "the process goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
