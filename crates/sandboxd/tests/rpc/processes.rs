//! Background processes over RPC.

use crate::sandbox::{Groups, Sandbox, drain, events, object, ok, readable};
use capnweb::{Object, Value};

async fn start(sandbox: &Sandbox, command: &str) -> Object {
    match sandbox
        .call("sandbox.startProcess", vec![command.into()])
        .await
        .unwrap()
    {
        Value::Object(process) => process,
        other => panic!("no object: {other:?}"),
    }
}

fn id(process: &Object) -> Value {
    process.get("id").and_then(Value::as_str).unwrap().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_is_verified() {
    for groups in [Groups::Available, Groups::None] {
        let sandbox = Sandbox::start_with(groups).await;
        let process = start(&sandbox, "sh -c 'sleep 301 & exec sleep 302'").await;
        sandbox.until("[ $(pgrep -xc sleep) = 2 ]").await;
        sandbox
            .call("sandbox.killProcess", vec![id(&process)])
            .await
            .unwrap();
        let gone = sandbox.exec("pgrep -xfc 'sleep 30[12]'").await;
        assert_eq!((gone.out.as_str(), gone.code), ("0\n", 1));
        let now = sandbox
            .call("sandbox.getProcess", vec![id(&process)])
            .await
            .unwrap();
        assert_eq!(now.get("status").and_then(Value::as_str), Some("killed"));
        assert_eq!(now.get("exitCode").and_then(Value::as_i64), Some(143));
        let domain = sandbox
            .call("processes.getProcess", vec![id(&process)])
            .await
            .unwrap();
        assert!(domain.get("process").unwrap().get("endTime").is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_outlives_its_caller_and_answers_by_its_functions() {
    let sandbox = Sandbox::start().await;
    let (connection, other) = sandbox.another().await;
    let process = other
        .call("sandbox.startProcess", vec!["echo hello; sleep 90".into()])
        .await
        .unwrap();
    let id: Value = process.get("id").and_then(Value::as_str).unwrap().into();
    drop((process, other));
    connection.abort(capnweb::ErrorValue::new("Error", "gone"));
    sandbox.until("pgrep -x sleep").await;
    let process = sandbox.call("sandbox.getProcess", vec![id]).await.unwrap();
    let function = |name: &str| process.get(name).and_then(Value::as_stub).unwrap().clone();
    let status = function("getStatus").call("", vec![]).await.unwrap();
    assert_eq!(status.as_str(), Some("running"));
    let logs = function("getLogs").call("", vec![]).await.unwrap();
    assert_eq!(logs.get("stdout").and_then(Value::as_str), Some("hello\n"));
    function("kill").call("", vec![]).await.unwrap();
    let exit = function("waitForExit").call("", vec![]).await.unwrap();
    assert_eq!(exit.get("exitCode").and_then(Value::as_i64), Some(143));
    assert!(
        sandbox
            .call("sandbox.getProcess", vec!["nobody".into()])
            .await
            .unwrap()
            .is_nullish()
    );
    let error = sandbox
        .call("processes.getProcess", vec!["nobody".into()])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("PROCESS_NOT_FOUND"));
}

#[tokio::test(flavor = "multi_thread")]
async fn following_replays_and_then_goes_on_without_a_gap() {
    let sandbox = Sandbox::start().await;
    let burst = "for i in $(seq 20); do head -c 8000 /dev/zero | tr '\\0' X; echo; sleep 0.02; done; exit 5";
    let process = start(&sandbox, burst).await;
    let mut first = readable(
        sandbox
            .call("sandbox.streamProcessLogs", vec![id(&process)])
            .await
            .unwrap(),
    );
    first.next().await.unwrap().unwrap();
    drop(first);
    let stream = sandbox
        .call("sandbox.streamProcessLogs", vec![id(&process)])
        .await
        .unwrap();
    let told = events(&drain(stream).await);
    let text: String = told
        .iter()
        .filter(|e| e["type"] == "stdout")
        .map(|e| e["data"].as_str().unwrap())
        .collect();
    assert_eq!(text, format!("{}\n", "X".repeat(8000)).repeat(20));
    let exit = told.last().unwrap();
    assert_eq!(
        (exit["type"].as_str(), exit["exitCode"].as_i64()),
        (Some("exit"), Some(5))
    );
    let again = sandbox
        .call("processes.streamProcessLogs", vec![id(&process)])
        .await
        .unwrap();
    assert_eq!(events(&drain(again).await).last().unwrap()["exitCode"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_processes_domain_has_the_official_shapes() {
    let sandbox = Sandbox::start().await;
    let options = object([
        ("processId", "web".into()),
        ("env", object([("V", "v".into())]).into()),
    ]);
    let args = vec!["echo $V; exit 4".into(), Value::Undefined, options.into()];
    let started = sandbox.call("processes.startProcess", args).await.unwrap();
    let keys: Vec<_> = started
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, _)| key.to_owned())
        .collect();
    assert_eq!(
        keys,
        ["success", "processId", "pid", "command", "timestamp"]
    );
    let exit = sandbox
        .call("sandbox.waitForExit", vec!["web".into()])
        .await
        .unwrap();
    assert_eq!(exit.get("exitCode").and_then(Value::as_i64), Some(4));
    let listed = sandbox
        .call("processes.listProcesses", vec![])
        .await
        .unwrap();
    let listed = listed.get("processes").unwrap().as_array().unwrap();
    assert_eq!(
        listed[0].get("status").and_then(Value::as_str),
        Some("failed")
    );
    let logs = sandbox
        .call("processes.getProcessLogs", vec!["web".into()])
        .await
        .unwrap();
    assert_eq!(logs.get("stdout").and_then(Value::as_str), Some("v\n"));
    let error = sandbox
        .call("processes.killProcess", vec!["web".into()])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("COMMAND_NOT_FOUND"));
    let killed = sandbox
        .call("processes.killAllProcesses", vec![])
        .await
        .unwrap();
    assert_eq!(killed.get("cleanedCount").and_then(Value::as_i64), Some(0));
    let bad = vec![
        "true".into(),
        object([("processId", "../etc".into())]).into(),
    ];
    let error = sandbox.call("sandbox.startProcess", bad).await.unwrap_err();
    assert_eq!(error.code(), Some("VALIDATION_FAILED"));
    let error = sandbox
        .call("sandbox.startProcess", vec![" ".into()])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("INVALID_COMMAND"));
    assert_eq!(sandbox.exec("echo fine").await, ok("fine\n"));
}
