//! What is too much, too long, in a circle or in pieces.

use super::*;

/// More than any of these may cost, client and double included.
const MEMORY_MAX_KIB: u64 = 768 * 1024;

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = peak.unwrap().split_whitespace().next().unwrap();
    number.parse().unwrap()
}

fn stream(value: Result<Value, ErrorValue>) -> capnweb::ReadableStream {
    match value.unwrap() {
        Value::Readable(stream) => stream,
        other => panic!("no stream: {other:?}"),
    }
}

/// Reads up to the error that must come.
async fn failure(stream: &mut capnweb::ReadableStream) -> ErrorValue {
    loop {
        match within(stream.next()).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return error,
            None => panic!("the stream ended well"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_daemon_says_ends_the_call_and_the_session_alone() {
    let world = World::new().await;
    world.create("good").await;
    for name in [
        "no-websocket",
        "no-utf8",
        "masked",
        "unknown-opcode",
        "long-ping",
        "continues-nothing",
        "fragments-forever",
        "gives-what-is-of-others",
        "writes-to-a-stream-of-others",
        "gives-a-stream-twice",
        "promises-itself",
    ] {
        let (code, details) = code(world.exec(name).await);
        assert_eq!(code, "OPERATION_INTERRUPTED", "{name} {details}");
        assert_eq!(details["admitted"], true, "{name}");
    }
    assert!(peak_kib() < MEMORY_MAX_KIB, "{} KiB", peak_kib());
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_but_lawful_answers_are_taken() {
    let world = World::new().await;
    world.create("good").await;
    for name in ["fragments", "pings-forever"] {
        let result = world.exec(name).await.unwrap();
        assert_eq!(
            result.get("stdout").and_then(Value::as_str),
            Some("ok"),
            "{name}"
        );
    }
    // The sandbox's word, whatever it is.
    assert_eq!(world.exec("a-number").await.unwrap().as_u64(), Some(7));
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_cut_or_refused() {
    let world = World::new().await;
    world.create("good").await;
    let error = world.exec("giant-error").await.unwrap_err();
    assert_eq!(error.code(), Some("FILE_NOT_FOUND"));
    assert!(error.message.len() <= 4096, "{}", error.message.len());
    assert!(
        error
            .details()
            .is_some_and(|details| details.get("path").is_none())
    );
    for name in ["a-million-values", "promises-in-a-row"] {
        let (code, _) = code(world.exec(name).await);
        assert_eq!(code, "PAYLOAD_TOO_LARGE", "{name}");
    }
    let sandbox = world.create("calls-back-forever").await;
    let callback = Stub::function(|_| async { Ok(1.into()) });
    let result = within(sandbox.call("exec", vec!["true".into(), callback.into()])).await;
    assert!(result.is_ok(), "{result:?}");
    world.others_work().await;
    assert!(peak_kib() < MEMORY_MAX_KIB, "{} KiB", peak_kib());
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_do_not_end_well_say_so() {
    let world = World::new().await;
    world.create("good").await;
    for (name, expected) in [
        ("ends-a-stream-halfway", "OPERATION_INTERRUPTED"),
        ("lets-a-stream-go", "RPC_TRANSPORT_ERROR"),
        ("fails-a-stream-at-length", "UNKNOWN_ERROR"),
        ("floods-a-stream", "RPC_TRANSPORT_ERROR"),
    ] {
        let mut broken = stream(world.exec(name).await);
        // A flood that is read meanwhile is none.
        while !world.log.has_said(name) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let error = failure(&mut broken).await;
        assert_eq!(
            error.code(),
            Some(expected),
            "{name}: {:.200}",
            error.message
        );
        assert!(error.message.len() <= 4096, "{name}");
        world.others_work().await;
    }
    assert!(peak_kib() < MEMORY_MAX_KIB, "{} KiB", peak_kib());
    world.server.stop().await;
}
