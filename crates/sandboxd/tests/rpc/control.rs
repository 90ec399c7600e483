//! The `control` main, and what is no method of either.

use crate::sandbox::{Sandbox, object, ok};
use capnweb::Value;

#[tokio::test(flavor = "multi_thread")]
async fn the_host_sets_the_durable_environment_and_reads_counts() {
    let sandbox = Sandbox::start().await;
    let (_connection, control) = sandbox.control().await;
    assert_eq!(
        control.call("ping", vec![]).await.unwrap().as_str(),
        Some("pong")
    );
    let env = object([
        ("A", "1".into()),
        ("PATH", Value::Null),
        ("B", "x=y\n".into()),
    ]);
    control
        .call("configure", vec![object([("env", env.into())]).into()])
        .await
        .unwrap();
    assert_eq!(sandbox.exec("echo \"$A$B\"").await, ok("1x=y\n\n"));
    control
        .call(
            "configure",
            vec![object([("env", object([]).into())]).into()],
        )
        .await
        .unwrap();
    assert_eq!(sandbox.exec("echo \"[$A]\"").await, ok("[]\n"));
    let process = vec![
        "sleep 91".into(),
        object([("holdAwake", true.into())]).into(),
    ];
    sandbox.call("sandbox.startProcess", process).await.unwrap();
    let stats = control.call("stats", vec![]).await.unwrap();
    let count = |name: &str| stats.get(name).and_then(Value::as_i64);
    assert_eq!(
        (count("processes"), count("holdAwake"), count("openCalls")),
        (Some(1), Some(1), Some(0))
    );
    let bad = object([("env", object([("A=B", "x".into())]).into())]);
    let error = control
        .call("configure", vec![bad.into()])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("INVALID_ENV"));
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_main_reaches_the_other_and_unknown_names_are_errors() {
    let sandbox = Sandbox::start().await;
    let (_connection, control) = sandbox.control().await;
    assert!(
        control
            .call("sandbox.exec", vec!["true".into()])
            .await
            .is_err()
    );
    for name in [
        "configure",
        "stats",
        "sandbox.configure",
        "sandbox.nothing",
        "files",
        "sandbox.exec.call",
    ] {
        let error = sandbox.call(name, vec![]).await.unwrap_err();
        assert_eq!(error.name, "TypeError", "{name}");
    }
    assert_eq!(
        sandbox.call("utils.ping", vec![]).await.unwrap().as_str(),
        Some("healthy")
    );
    let group = sandbox.user.get("sandbox").await.unwrap();
    let through = group
        .as_stub()
        .unwrap()
        .call("exec", vec!["echo hi".into()])
        .await
        .unwrap();
    assert_eq!(through.get("stdout").and_then(Value::as_str), Some("hi\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_calls_leave_no_references() {
    let sandbox = Sandbox::start().await;
    let before = sandbox.stats();
    for _ in 0..500 {
        let function = capnweb::Stub::function(|_| async { Ok(Value::Undefined) });
        let options = object([("cwd", "/nope".into()), ("onOutput", function.into())]);
        assert!(sandbox.exec_with("true", options).await.is_err());
    }
    sandbox.exec("true").await;
    let after = sandbox.stats();
    assert!(after.exports <= before.exports + 1 && after.imports <= before.imports + 1);
}
