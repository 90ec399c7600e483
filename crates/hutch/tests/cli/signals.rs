//! Breaking commands off.

use super::{good, with_sandbox};
use hutch_e2e::Hutch;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Stdio},
};

/// Starts a command that says `up`, and waits until it has.
fn started(hutch: &Hutch, script: &str) -> Child {
    let mut command = hutch.command(&["exec", "main", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let mut reader = BufReader::new(stdout);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    // Whatever follows is drained, or the command might wait for us.
    std::thread::spawn(move || reader.read_to_end(&mut Vec::new()));
    child
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn count(hutch: &Hutch, name: &str) -> String {
    let script = format!("pgrep -xc {name} || true");
    good(&hutch.cli(&["exec", "main", "-c", &script]))
}

#[test]
fn ctrl_c_ends_the_command_and_all_it_started() {
    let hutch = with_sandbox();
    let mut child = started(&hutch, "setsid sleep 311 & sleep 312 & echo up; wait");
    assert_eq!(count(&hutch, "sleep"), "2\n");
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(count(&hutch, "sleep"), "0\n");
}

#[test]
fn a_command_that_ignores_signals_is_ended_all_the_same() {
    let hutch = with_sandbox();
    let mut child = started(
        &hutch,
        "trap '' INT TERM; sleep 313 & echo up; while :; do wait; done",
    );
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(count(&hutch, "sleep"), "0\n");
}

#[test]
fn ctrl_c_ends_a_script() {
    let hutch = with_sandbox();
    let mut command = hutch.command(&["itx", "run", "-e", "console.log('up'); for (;;);"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "up\n");
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_server_that_dies_is_our_failure_not_the_commands() {
    let mut hutch = with_sandbox();
    let mut command = hutch.command(&["--json", "exec", "main", "-c", "echo up; exec sleep 314"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    hutch.end(Signal::KILL);
    let output = child.wait_with_output().unwrap();
    hutch.serve();
    assert_eq!(output.status.code(), Some(125));
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["code"], "OPERATION_INTERRUPTED");
}
