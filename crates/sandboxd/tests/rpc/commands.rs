//! `commands` and `exec`, `execStream` of the handle.

use crate::sandbox::{Groups, Outcome, Sandbox, drain, events, object, ok, readable};
use capnweb::Value;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn a_result_has_the_official_shape() {
    let sandbox = Sandbox::start().await;
    let result = sandbox
        .call("commands.execute", vec!["echo hi; exit 3".into()])
        .await
        .unwrap();
    let keys: Vec<_> = result
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, _)| key.to_owned())
        .collect();
    assert_eq!(
        keys,
        [
            "success",
            "exitCode",
            "stdout",
            "stderr",
            "command",
            "timestamp"
        ]
    );
    assert_eq!(result.get("stdout").and_then(Value::as_str), Some("hi\n"));
    assert_eq!(result.get("success").and_then(Value::as_bool), Some(false));
    let none = vec![
        "true".into(),
        "__DISABLE_SESSION__".into(),
        Value::Undefined,
    ];
    assert!(sandbox.call("commands.execute", none).await.is_ok());
    let session = vec!["true".into(), "mine".into()];
    let error = sandbox.call("commands.execute", session).await.unwrap_err();
    assert_eq!(error.code(), Some("VALIDATION_FAILED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_ends_the_call_and_background_children_live_on() {
    for groups in [Groups::Available, Groups::None] {
        let sandbox = Sandbox::start_with(groups).await;
        let started = Instant::now();
        assert_eq!(
            sandbox.exec("sleep 60 & echo started").await,
            ok("started\n")
        );
        assert!(started.elapsed() < Duration::from_secs(3));
        // Its shell may not have executed it yet.
        sandbox.until("pgrep -xc sleep").await;
        let started = Instant::now();
        sandbox
            .call("sandbox.listFiles", vec![".".into()])
            .await
            .unwrap();
        assert!(started.elapsed() < Duration::from_secs(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_output_and_odd_bytes_arrive_whole() {
    let sandbox = Sandbox::start().await;
    let both =
        "(head -c 3000000 /dev/zero | tr '\\0' e >&2); (head -c 3000000 /dev/zero | tr '\\0' o)";
    let outcome = sandbox.exec(both).await;
    assert_eq!(
        (outcome.code, outcome.out.len(), outcome.err.len()),
        (0, 3_000_000, 3_000_000)
    );
    for prefix in ["", "a", "ab"] {
        let euros = format!("python3 -c \"print('{prefix}'+'€'*4000000,end='')\"");
        let out = sandbox.exec(&euros).await.out;
        assert_eq!(out, format!("{prefix}{}", "€".repeat(4_000_000)));
    }
    assert_eq!(sandbox.exec(r"printf 'a\0b\0'").await, ok("a\0b\0"));
    let exact = sandbox.call(
        "sandbox.exec",
        vec![
            r"printf 'a\xff\xfeb\n'".into(),
            object([("encoding", "base64".into())]).into(),
        ],
    );
    let exact = exact.await.unwrap();
    assert_eq!(
        exact.get("stdoutBase64").and_then(Value::as_str),
        Some("Yf/+Ygo=")
    );
    assert!(exact.get("stdout").is_none());
    let control = sandbox.exec("head -c 4000000 /dev/zero").await;
    assert_eq!(
        control.out.len(),
        (16 << 20) / 6,
        "each NUL takes six bytes of the answer"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_brings_events_as_they_happen() {
    let sandbox = Sandbox::start().await;
    let started = Instant::now();
    let stream = sandbox.call(
        "sandbox.execStream",
        vec!["printf 'x'; sleep 2; printf 'y\\n'; exit 4".into()],
    );
    let mut stream = readable(stream.await.unwrap());
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains(r#""data":"x""#) {
        text.extend_from_slice(stream.next().await.unwrap().unwrap().as_bytes().unwrap());
    }
    assert!(started.elapsed() < Duration::from_millis(1500));
    while let Some(chunk) = stream.next().await {
        text.extend_from_slice(chunk.unwrap().as_bytes().unwrap());
    }
    let events = events(&text);
    let kinds: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["start", "stdout", "stdout", "complete"]);
    assert!(events[0]["pid"].as_i64().unwrap() > 1);
    assert_eq!(events[3]["exitCode"], 4);
    assert!(text.starts_with(b"event: start\ndata: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn characters_across_reads_are_whole_in_events() {
    let sandbox = Sandbox::start().await;
    let command =
        r"printf '\xe2\x82'; printf 'caf\xc3' >&2; sleep 0.3; printf '\xac\n'; printf '\xa9\n' >&2";
    let stream = sandbox
        .call("commands.executeStream", vec![command.into()])
        .await
        .unwrap();
    let events = events(&drain(stream).await);
    let text = |kind: &str| -> String {
        events
            .iter()
            .filter(|e| e["type"] == kind)
            .map(|e| e["data"].as_str().unwrap())
            .collect()
    };
    assert_eq!(
        (text("stdout").as_str(), text("stderr").as_str()),
        ("€\n", "café\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_mebibytes_by_stream() {
    let sandbox = Sandbox::start().await;
    let command = "head -c 67108864 /dev/zero | tr '\\0' x";
    let mut stream = readable(
        sandbox
            .call("sandbox.execStream", vec![command.into()])
            .await
            .unwrap(),
    );
    let mut xs = 0;
    while let Some(chunk) = stream.next().await {
        for event in events(chunk.unwrap().as_bytes().unwrap()) {
            xs += event["data"]
                .as_str()
                .map_or(0, |data| data.bytes().filter(|b| *b == b'x').count());
        }
    }
    assert_eq!(xs, 67_108_864);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_is_an_event_there_and_an_error_here() {
    let sandbox = Sandbox::start().await;
    let args = |cwd: &str| {
        vec![
            "pwd".into(),
            Value::Undefined,
            object([("cwd", cwd.into())]).into(),
        ]
    };
    let stream = sandbox
        .call("commands.executeStream", args("/nope"))
        .await
        .unwrap();
    let events = events(&drain(stream).await);
    assert_eq!(
        (events.len(), events[0]["type"].as_str()),
        (1, Some("error"))
    );
    let error = sandbox
        .exec_with("pwd", object([("cwd", "/nope".into())]))
        .await
        .unwrap_err();
    assert!(error.message.contains("/nope") && error.props.get("exitCode").is_none());
    assert_eq!(error.code(), Some("COMMAND_EXECUTION_ERROR"));
    assert_eq!(
        error.props.get("httpStatus").and_then(Value::as_i64),
        Some(500)
    );
    let error = sandbox
        .call("sandbox.execStream", vec!["".into()])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("INVALID_COMMAND"));
    for options in [
        object([("env", object([("A=B", "x".into())]).into())]),
        object([("timeout", 0.into())]),
        object([("timeout", f64::NAN.into())]),
        object([("cwd", 7.into())]),
        object([("encoding", "latin1".into())]),
    ] {
        let error = sandbox.exec_with("true", options).await.unwrap_err();
        assert_eq!(error.code(), Some("VALIDATION_FAILED"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_leaves_nothing_behind() {
    for groups in [Groups::Available, Groups::None] {
        let sandbox = Sandbox::start_with(groups).await;
        let command = "trap '' TERM; (setsid bash -c \"trap '' TERM; sleep 50; sleep 51\" &); sleep 52; sleep 53";
        let outcome = sandbox
            .exec_with(command, object([("timeout", 300.into())]))
            .await
            .unwrap();
        assert_eq!(
            outcome,
            Outcome {
                code: 124,
                out: String::new(),
                err: "Command timed out after 300ms\n".into()
            }
        );
        assert_eq!(sandbox.exec("pgrep -xc sleep").await.out, "0\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_goes_away_ends_its_call_and_a_reader_who_cancels_too() {
    let sandbox = Sandbox::start().await;
    let (connection, other) = sandbox.another().await;
    let call = other.call("sandbox.exec", vec!["(setsid sleep 70 &); sleep 71".into()]);
    sandbox
        .until("pgrep -xf 'sleep 70' && pgrep -xf 'sleep 71'")
        .await;
    drop((call, other));
    connection.abort(capnweb::ErrorValue::new("Error", "gone"));
    sandbox.until("! pgrep -x sleep").await;

    let stream = sandbox
        .call("sandbox.execStream", vec!["sleep 72".into()])
        .await
        .unwrap();
    sandbox.until("pgrep -xf 'sleep 72'").await;
    drop(stream);
    sandbox.until("! pgrep -x sleep").await;

    let call = sandbox.user.call("sandbox.exec", vec!["sleep 73".into()]);
    sandbox.until("pgrep -xf 'sleep 73'").await;
    drop(call);
    sandbox.until("! pgrep -x sleep").await;
}
