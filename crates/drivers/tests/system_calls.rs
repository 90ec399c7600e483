//! What a sandbox may not call, and that it is the sandbox that refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use hutch_protocol::InstanceType;
use support::{Machine, PROBE, as_pid_1, run};

/// Each attempt in a process of its own: `name expected error`, or the status
/// of a process that the attempt ended.
const TRY_ALL: &str = "for name in $($probe attempts); do echo \"$name $($probe attempt $name 2>&1 || echo killed $?)\"; done";

fn parse(text: &str) -> BTreeMap<String, (String, i32)> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next()?.to_owned();
            let expected = words.next()?.to_owned();
            Some((name, (expected, words.last()?.parse().ok()?)))
        })
        .collect()
}

#[tokio::test]
async fn every_refused_call_works_outside() {
    let machine = Machine::new().await;
    let instance = machine.start("calls", InstanceType::Basic).await;
    let try_all = format!("probe=/proc/1/exe; {TRY_ALL}");
    let (code, by_command) = run(&instance, &try_all).await;
    assert_eq!(code, 0, "{by_command}");
    // Who has taken over PID 1 is not under the filter for commands.
    let (code, by_daemon) = as_pid_1(&instance, &try_all).await;
    assert_eq!(code, 0, "{by_daemon}");
    let tried = [parse(&by_command), parse(&by_daemon)];

    // With root's rights, and yet nothing of the machine may change: some
    // attempts take an interface down or hang up the terminal where they work.
    let outside = Command::new("setsid")
        .args(["--wait", "unshare", "--net", "--uts", "--ipc"])
        .args(["--mount", "--propagation", "private", "bash", "-c"])
        .arg(format!(
            "mount -t tmpfs t /mnt; sleep 600 & export HUTCH_PROBE_TARGET=$!; probe={PROBE}; {TRY_ALL}; kill $!"
        ))
        .output()
        .unwrap();
    let outside = parse(&String::from_utf8_lossy(&outside.stdout));

    assert!(tried.iter().all(|inside| inside.len() > 90), "{tried:?}");
    let refusals = [
        libc::EPERM,
        libc::ENOSYS,
        libc::ENOSPC,
        libc::EAFNOSUPPORT,
        libc::EPROTONOSUPPORT,
        128 + libc::SIGSYS,
    ];
    let mut wrong = Vec::new();
    for (name, (_, error)) in tried.iter().flatten() {
        if !refusals.contains(error) {
            wrong.push(format!("{name} gave {error} inside"));
        }
        let (expected, error) = &outside[name];
        let is_shown = match expected.as_str() {
            "works" => *error == 0,
            _ => *error != libc::EPERM,
        };
        if !is_shown {
            wrong.push(format!("{name} gave {error} outside"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    drop(instance);
    machine.close().await;
}
