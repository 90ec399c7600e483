//! What being PID 1 asks for.

use crate::sandbox::{Groups, Sandbox, ok};
use futures_util::future::join_all;

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
    let left = std::fs::read_dir(path)
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .count();
    assert!(left <= 1, "{left} groups are left");
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
    let daemon = rustix::process::Pid::from_raw(sandbox.daemon()).unwrap();
    rustix::process::kill_process(daemon, rustix::process::Signal::TERM).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while std::fs::read(format!("/proc/{}/stat", daemon.as_raw_nonzero())).is_ok() {
        assert!(std::time::Instant::now() < deadline, "the daemon goes on");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(std::fs::read_to_string(mark).unwrap(), "told\n");
}
