//! Commands as callers see them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::services::testing::{Bench, alive, until};
use bytes::Bytes;
use hutch_protocol::ErrorCode;
use hutch_protocol::exec::OutputEncoding;
use std::time::{Duration, Instant};

fn ok(out: &str) -> (i32, String, String) {
    (0, out.into(), String::new())
}

#[tokio::test]
async fn a_background_child_does_not_hold_up_the_call_and_lives_on() {
    let bench = Bench::new();
    let started = Instant::now();
    assert_eq!(
        bench.exec("sleep 63.01 & echo started").await,
        ok("started\n")
    );
    assert!(started.elapsed() < Duration::from_secs(3));
    until("the child lives on", || alive("sleep 63.01")).await;
    // It may even go on writing to the output of its call.
    let writes = bench
        .exec("(sleep 0.3; echo late; echo done > late-done) & echo now")
        .await;
    assert_eq!(writes, ok("now\n"));
    until("the late writer is not killed", || {
        bench.path("late-done").exists()
    })
    .await;
    bench.exec("pkill -xf 'sleep 63.01'").await;
}

#[tokio::test]
async fn standard_input_is_empty_unless_given() {
    let bench = Bench::new();
    assert_eq!(bench.exec("cat").await, ok(""));
    assert_eq!(
        bench.exec("read x; echo \"rc=$? x=[$x]\"").await,
        ok("rc=1 x=[]\n")
    );
    let mut request = Request::shell("cat; echo end");
    request.stdin = Stdin::Bytes(Bytes::from_static(b"given\n"));
    assert_eq!(
        bench.run(request).await.unwrap().stdout.content,
        "given\nend\n"
    );
    // Far more than a pipe holds, to a command that does not read it.
    let mut request = Request::shell("true");
    request.stdin = Stdin::Bytes(Bytes::from(vec![0; 1 << 20]));
    assert_eq!(bench.run(request).await.unwrap().ended.code(), 0);
}

#[tokio::test]
async fn exit_codes_are_those_of_a_shell() {
    let bench = Bench::new();
    let (code, _, err) = bench.exec("definitely_not_a_cmd_xyz").await;
    assert_eq!(code, 127);
    assert!(err.contains("definitely_not_a_cmd_xyz"));
    let (code, _, err) = bench.exec("touch ne; chmod 644 ne; ./ne").await;
    assert_eq!(code, 126);
    assert!(err.contains("Permission denied"));
    assert_eq!(bench.exec("kill -9 $$").await.0, 137);
    assert_eq!(bench.exec("kill -TERM $$").await.0, 143);
    assert_eq!(
        bench
            .exec("bash -c 'ulimit -c 0; kill -SEGV $$' 2>/dev/null; echo rc=$?")
            .await
            .1,
        "rc=139\n"
    );
    assert_eq!(
        bench.exec("grep foo /dev/null").await,
        (1, String::new(), String::new())
    );
    assert_eq!(bench.exec("").await, ok(""));
}

#[tokio::test]
async fn characters_across_reads_stay_whole_on_both_streams() {
    let bench = Bench::new();
    let command =
        r"printf '\xe2\x82'; printf 'caf\xc3' >&2; sleep 0.3; printf '\xac\n'; printf '\xa9\n' >&2";
    assert_eq!(
        bench.exec(command).await,
        (0, "€\n".into(), "café\n".into())
    );
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced_one_by_one_or_given_as_base64() {
    let bench = Bench::new();
    let command = r"printf 'a\xff\xfeb\n'";
    assert_eq!(bench.exec(command).await, ok("a\u{fffd}\u{fffd}b\n"));
    let exact = bench
        .commands
        .exec(Request::shell(command), OutputEncoding::Base64)
        .await
        .unwrap();
    assert_eq!(exact.stdout.content, "Yf/+Ygo=");
}

#[tokio::test]
async fn bytes_pass_through() {
    let bench = Bench::new();
    assert_eq!(bench.exec("printf 'no newline'").await, ok("no newline"));
    assert_eq!(bench.exec(r"printf 'a\rb\rc'").await, ok("a\rb\rc"));
    assert_eq!(bench.exec(r"printf 'a\0b\0'").await, ok("a\0b\0"));
    let (_, out, _) = bench
        .exec("mkdir q; touch q/1 q/2; find q -type f -print0 | sort -z")
        .await;
    assert_eq!(out, "q/1\0q/2\0");
}

#[tokio::test]
async fn both_streams_are_drained_together_and_kept_up_to_the_limit() {
    let bench = Bench::new();
    let command =
        "(head -c 3000000 /dev/zero | tr '\\0' e >&2); (head -c 3000000 /dev/zero | tr '\\0' o)";
    let (code, out, err) = bench.exec(command).await;
    assert_eq!((code, out.len(), err.len()), (0, 3_000_000, 3_000_000));
    assert!(out.bytes().all(|byte| byte == b'o') && err.bytes().all(|byte| byte == b'e'));
    let command = "head -c 20000000 /dev/zero | tr '\\0' x; echo end >&2; exit 3";
    let finished = bench.run(Request::shell(command)).await.unwrap();
    assert_eq!(finished.ended.code(), 3);
    assert_eq!(
        (finished.stdout.content.len(), finished.stdout.truncated),
        (16 << 20, true)
    );
    assert!(finished.stderr.truncated);
}

#[tokio::test]
async fn nothing_is_added_to_the_command() {
    let bench = Bench::new();
    assert_eq!(bench.exec("seq 2 | wc -l").await, ok("2\n"));
    assert_eq!(bench.exec("echo x |& cat").await, ok("x\n"));
    assert_eq!(bench.exec("true && seq 3 | tail -1").await, ok("3\n"));
    assert_eq!(
        bench.exec("echo $0 $#; echo trailing \\").await,
        ok("bash 0\ntrailing \\\n")
    );
    assert_eq!(bench.exec("cat <<E\nhere\nE").await, ok("here\n"));
}

#[tokio::test]
async fn a_long_command_runs_like_a_short_one() {
    let bench = Bench::new();
    let filler = format!(": '{}'\n", "x".repeat(300_000));
    let command =
        format!("{filler}echo $0 $#; ls /proc/self/fd | wc -l; cat; cat <<E\nhere\nE\nexit 5");
    assert_eq!(
        bench.exec(&command).await,
        (5, "bash 0\n4\nhere\n".into(), String::new())
    );
    let huge = format!("printf %s '{}' | wc -c", "y".repeat(20_000_000));
    assert_eq!(bench.exec(&huge).await, ok("20000000\n"));
    let error = bench
        .run(Request::shell("x".repeat((32 << 20) + 1)))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ValidationFailed);
}

#[tokio::test]
async fn call_variables_are_exact_and_gone_afterwards() {
    let bench = Bench::new();
    let value = "a'b\"c$HOME`id`\nexport EVIL=1\u{1}=";
    let mut request = Request::shell("printf %s \"$V\"; printf '[%s]' \"${E-unset}\"");
    request.env = [
        ("V".into(), Some(value.into())),
        ("E".into(), Some(String::new())),
    ]
    .into();
    assert_eq!(
        bench.run(request).await.unwrap().stdout.content,
        format!("{value}[]")
    );
    assert_eq!(bench.exec("echo \"[$V][$EVIL]\"").await, ok("[][]\n"));
    bench
        .environment
        .replace([("D".into(), Some("durable".into()))].into());
    assert_eq!(bench.exec("echo $D").await, ok("durable\n"));
}

#[tokio::test]
async fn the_working_directory_is_of_the_call() {
    let bench = Bench::new();
    let mut request = Request::shell("pwd");
    request.cwd = Some("/nope".into());
    let error = bench.run(request).await.unwrap_err();
    assert!(error.message.contains("/nope"));
    assert_eq!(error.code, ErrorCode::CommandExecutionError);
    let mut request = Request::shell("pwd");
    request.cwd = Some("/tmp".into());
    assert_eq!(bench.run(request).await.unwrap().stdout.content, "/tmp\n");
    let here = format!(
        "{}\n",
        bench.path("").to_str().unwrap().trim_end_matches('/')
    );
    assert_eq!(bench.exec("pwd").await, ok(&here));
    assert_eq!(bench.exec("mkdir d; cd d; rmdir ../d").await.0, 0);
    assert_eq!(bench.exec("echo ok").await, ok("ok\n"));
    bench.exec("mkdir sub").await;
    let mut request = Request::shell("basename $PWD");
    request.cwd = Some("sub".into());
    assert_eq!(bench.run(request).await.unwrap().stdout.content, "sub\n");
}

#[tokio::test]
async fn text_is_utf8_by_default() {
    let bench = Bench::new();
    assert_eq!(bench.exec("locale charmap").await, ok("UTF-8\n"));
    assert_eq!(
        bench.exec("python3 -c \"print('日本語')\"").await,
        ok("日本語\n")
    );
}

#[tokio::test]
async fn a_timeout_ends_everything_and_answers_124() {
    let bench = Bench::new();
    let mut request = Request::shell(
        "trap '' TERM; setsid bash -c \"trap '' TERM; sleep 64.01; sleep 64.02\" & printf partial >&2; sleep 64.03; sleep 64.04",
    );
    request.timeout = Some(Duration::from_millis(300));
    let started = Instant::now();
    let finished = bench.run(request).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_eq!(
        (finished.ended.code(), finished.ended.timed_out),
        (124, true)
    );
    assert_eq!(
        finished.stderr.content,
        "partial\nCommand timed out after 300ms\n"
    );
    for number in 1..5 {
        assert!(!alive(&format!("sleep 64.0{number}")));
    }
}

#[tokio::test]
async fn a_caller_who_goes_away_takes_the_whole_tree_along() {
    let bench = Bench::new();
    let mut call =
        Box::pin(bench.run(Request::shell("(setsid sleep 65.01 &); sleep 65.02 & wait")));
    let both = || alive("sleep 65.01") && alive("sleep 65.02");
    tokio::select! {
        _ = &mut call => panic!("the call ended"),
        () = until("both start", both) => {}
    }
    drop(call);
    bench.children.cleaned_up().await;
    assert!(!alive("sleep 65.01") && !alive("sleep 65.02"));
}

#[tokio::test]
async fn programs_run_without_a_shell() {
    let bench = Bench::new();
    let mut request = Request::shell("");
    request.program = Program::Argv(["printf", "%s|", "a b", "$HOME", ""].map(Into::into).into());
    assert_eq!(
        bench.run(request).await.unwrap().stdout.content,
        "a b|$HOME||"
    );
    for (name, code) in [
        ("no-such-program", ErrorCode::CommandNotFound),
        ("/etc", ErrorCode::CommandPermissionDenied),
    ] {
        let mut request = Request::shell("");
        request.program = Program::Argv(vec![name.into()]);
        let error = bench.run(request).await.unwrap_err();
        assert_eq!(error.code, code);
        assert!(error.message.contains(name));
    }
}
