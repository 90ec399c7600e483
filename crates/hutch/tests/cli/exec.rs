//! Bytes, codes and pipes of `hutch exec`.

use super::{good, with_sandbox};
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::{Duration, Instant},
};

#[test]
fn sixteen_mebibytes_pass_unchanged() {
    let hutch = with_sandbox();
    let mut state = 7u64;
    let input: Vec<u8> = (0..16 << 20)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    let output = hutch.cli_with(&["exec", "main", "--", "cat"], &input);
    assert!(output.status.success());
    assert!(
        output.stdout == input,
        "{} bytes came back",
        output.stdout.len()
    );
}

#[test]
fn both_streams_and_the_code_are_the_commands_own() {
    let hutch = with_sandbox();
    let script = r"printf 'a\xff\n'; printf 'e\xfe' >&2; exit 7";
    let output = hutch.cli(&["exec", "main", "-c", script]);
    assert_eq!(output.stdout, b"a\xff\n");
    assert_eq!(output.stderr, b"e\xfe");
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn codes_of_ends_by_signal_and_timeout() {
    let hutch = with_sandbox();
    let code = |args: &[&str]| hutch.cli(args).status.code();
    assert_eq!(code(&["exec", "main", "--", "true"]), Some(0));
    assert_eq!(code(&["exec", "main", "-c", "kill -9 $$"]), Some(137));
    let begun = Instant::now();
    let slow = &[
        "exec",
        "main",
        "--timeout",
        "500ms",
        "-c",
        "sleep 60 & sleep 60",
    ];
    assert_eq!(code(slow), Some(124));
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(code(&["exec", "main", "--", "no-such-program"]), Some(127));
}

#[test]
fn environment_directory_and_arguments_arrive_exactly() {
    let hutch = with_sandbox();
    let output = hutch.cli(&[
        "exec",
        "main",
        "--cwd",
        "/tmp",
        "--env",
        "V=a'b\"c$HOME\n=",
        "--",
        "bash",
        "-c",
        "pwd; printf %s \"$V\"; printf '[%s]' \"$@\"",
        "x",
        "",
        "a b",
        "--json",
    ]);
    assert_eq!(good(&output), "/tmp\na'b\"c$HOME\n=[][a b][--json]");
}

#[test]
fn without_input_a_command_reads_the_end_at_once() {
    let hutch = with_sandbox();
    assert_eq!(good(&hutch.cli(&["exec", "main", "--", "cat"])), "");
}

#[test]
fn a_command_need_not_read_its_input() {
    let hutch = with_sandbox();
    let input = vec![b'x'; 8 << 20];
    let output = hutch.cli_with(&["exec", "main", "--", "head", "-c", "3"], &input);
    assert_eq!(good(&output), "xxx");
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_a_pipe_would() {
    let hutch = with_sandbox();
    let mut command = hutch.command(&["exec", "main", "--", "yes"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert_eq!(line, "y\n");
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn what_a_command_leaves_running_does_not_hold_us() {
    let hutch = with_sandbox();
    let begun = Instant::now();
    let output = hutch.cli(&["exec", "main", "-c", "sleep 60 & echo started"]);
    assert_eq!(good(&output), "started\n");
    assert!(begun.elapsed() < Duration::from_secs(30));
}
