//! `spawn`: exact byte streams both ways.

use crate::sandbox::{Sandbox, drain, object, readable};
use capnweb::{ReadableStream, Stub, Value};

struct Spawned {
    pid: i64,
    stdout: Value,
    stderr: Value,
    exit: Stub,
}

async fn spawn(sandbox: &Sandbox, options: capnweb::Object) -> Spawned {
    let Value::Object(mut result) = sandbox
        .call("sandbox.spawn", vec![options.into()])
        .await
        .unwrap()
    else {
        panic!("no object")
    };
    let exit = result.remove("exit").unwrap();
    Spawned {
        pid: result.get("pid").and_then(Value::as_i64).unwrap(),
        stdout: result.remove("stdout").unwrap(),
        stderr: result.remove("stderr").unwrap(),
        exit: exit.as_stub().unwrap().clone(),
    }
}

fn argv(argv: &[&str]) -> Value {
    argv.iter()
        .map(|argument| Value::from(*argument))
        .collect::<Vec<_>>()
        .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_go_in_and_come_out_exactly() {
    let sandbox = Sandbox::start().await;
    let (writer, stdin) = ReadableStream::channel(1 << 20);
    let options = object([
        ("argv", argv(&["bash", "-c", "tee /dev/stderr; exit 6"])),
        ("stdin", stdin.into()),
    ]);
    let spawned = spawn(&sandbox, options).await;
    assert!(spawned.pid > 1);
    let all: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    let expected = all.clone();
    let feed = async move {
        for piece in all.chunks(70_000) {
            writer.write(piece.to_vec()).await.unwrap();
        }
        writer.close();
    };
    let ((), out, err) = tokio::join!(feed, drain(spawned.stdout), drain(spawned.stderr));
    assert!(out == expected && err == expected);
    let report = spawned.exit.call("", vec![]).await.unwrap();
    assert_eq!(report.get("exitCode").and_then(Value::as_i64), Some(6));
    assert_eq!(report.get("timedOut").and_then(Value::as_bool), Some(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_is_held_up_by_a_slow_reader_and_ended_by_a_cancel() {
    let sandbox = Sandbox::start().await;
    let before = sandbox.memory();
    let spawned = spawn(&sandbox, object([("argv", argv(&["cat", "/dev/zero"]))])).await;
    let mut stdout = readable(spawned.stdout);
    for _ in 0..64 {
        stdout.next().await.unwrap().unwrap();
    }
    assert!(sandbox.memory() < before + (64 << 20));
    drop(stdout);
    let report = spawned.exit.call("", vec![]).await.unwrap();
    assert_eq!(report.get("exitCode").and_then(Value::as_i64), Some(141));
    assert_eq!(report.get("signal").and_then(Value::as_i64), Some(13));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_signalled_and_ended() {
    let sandbox = Sandbox::start().await;
    let command = "trap 'echo int; exit 5' INT; echo ready; while :; do sleep 0.02; done";
    let spawned = spawn(&sandbox, object([("command", command.into())])).await;
    let mut stdout = readable(spawned.stdout);
    let ready = stdout.next().await.unwrap().unwrap();
    assert_eq!(ready.as_bytes().unwrap().as_ref(), b"ready\n");
    spawned
        .exit
        .call("kill", vec!["SIGINT".into()])
        .await
        .unwrap();
    assert_eq!(drain(stdout.into()).await, b"int\n");
    let report = spawned.exit.call("", vec![]).await.unwrap();
    assert_eq!(report.get("exitCode").and_then(Value::as_i64), Some(5));

    let spawned = spawn(
        &sandbox,
        object([(
            "command",
            "trap '' TERM; (setsid sleep 80 &); sleep 81".into(),
        )]),
    )
    .await;
    sandbox
        .until("pgrep -xf 'sleep 80' && pgrep -xf 'sleep 81'")
        .await;
    spawned
        .exit
        .call("kill", vec!["KILL".into()])
        .await
        .unwrap();
    assert_eq!(sandbox.exec("pgrep -xc sleep").await.out, "0\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_when_its_exit_is_released() {
    let sandbox = Sandbox::start().await;
    let spawned = spawn(&sandbox, object([("command", "sleep 82".into())])).await;
    sandbox.until("pgrep -xf 'sleep 82'").await;
    let Spawned { stdout, exit, .. } = spawned;
    drop(exit);
    sandbox.until("! pgrep -x sleep").await;
    assert_eq!(drain(stdout).await, b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_time_can_be_limited() {
    let sandbox = Sandbox::start().await;
    let options = object([("argv", argv(&["sleep", "83"])), ("timeout", 100.into())]);
    let spawned = spawn(&sandbox, options).await;
    let report = spawned.exit.call("", vec![]).await.unwrap();
    assert_eq!(report.get("exitCode").and_then(Value::as_i64), Some(124));
    assert_eq!(report.get("timedOut").and_then(Value::as_bool), Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_is_a_typed_error() {
    let sandbox = Sandbox::start().await;
    for (options, code) in [
        (
            object([("argv", argv(&["no-such-program"]))]),
            "COMMAND_NOT_FOUND",
        ),
        (
            object([("argv", argv(&["/etc"]))]),
            "COMMAND_PERMISSION_DENIED",
        ),
        (object([("argv", argv(&[]))]), "INVALID_COMMAND"),
        (object([]), "INVALID_COMMAND"),
        (object([("argv", "true".into())]), "VALIDATION_FAILED"),
        (
            object([("command", "true".into()), ("sessionId", "s".into())]),
            "VALIDATION_FAILED",
        ),
    ] {
        let error = sandbox
            .call("sandbox.spawn", vec![options.into()])
            .await
            .unwrap_err();
        assert_eq!(error.code(), Some(code));
    }
}
