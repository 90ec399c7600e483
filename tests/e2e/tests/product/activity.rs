//! What keeps a sandbox awake, and looking at it without doing so.

use std::time::{Duration, Instant};

use capnweb::{Stub, Value};
use hutch_e2e::Hutch;
use hutch_protocol::Patch;
use rustix::process::Signal;
use serde_json::{Value as Json, json};

/// Collects what a function of ours is called with.
fn collector() -> (Stub, tokio::sync::mpsc::Receiver<Json>) {
    let (sender, receiver) = tokio::sync::mpsc::channel(64);
    let function = Stub::function(move |args: Vec<Value>| {
        let sender = sender.clone();
        async move {
            let message = args.into_iter().next().unwrap_or_default();
            let _ = sender.send(message.to_json().unwrap_or_default()).await;
            Ok(Value::Undefined)
        }
    });
    (function, receiver)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_state_follows_a_whole_life_and_never_wakes() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"sleepAfter": 1})).await;
    let (function, mut messages) = collector();
    let subscription = sandbox
        .0
        .call("liveState.subscribe", vec![Value::Stub(function)])
        .stub();
    let first = messages.recv().await.unwrap();
    assert_eq!(
        (&first["type"], &first["state"]["status"]),
        (&json!("snapshot"), &json!("created"))
    );
    let (mut revision, mut state) = (first["revision"].clone(), first["state"].clone());
    assert_eq!(
        sandbox.json("liveState.get", &[]).await,
        json!({"revision": revision, "state": state})
    );
    sandbox.sh("true").await;
    // Followed and looked at often, it falls asleep nevertheless.
    while state["status"] != "stopped" {
        let looked = tokio::time::timeout(Duration::from_millis(500), messages.recv()).await;
        for look in [
            "liveState.get",
            "describe",
            "processor.getRuntimeState",
            "listProcesses",
        ] {
            sandbox.json(look, &[]).await;
        }
        let Ok(message) = looked else { continue };
        apply(&message.unwrap(), &mut revision, &mut state);
    }
    assert_eq!(state["running"], false);
    sandbox.json("destroy", &[]).await;
    while state["status"] != "destroyed" {
        apply(&messages.recv().await.unwrap(), &mut revision, &mut state);
    }
    let waited = sandbox
        .json(
            "processor.waitUntilProcessed",
            &[json!({"offset": revision})],
        )
        .await;
    assert_eq!(waited["offset"], revision);
    let snapshot = sandbox.json("processor.snapshot", &[]).await;
    assert_eq!(snapshot, json!({"offset": revision, "state": state}));
    let late = json!({"offset": 1000, "timeoutMs": 1});
    assert_eq!(
        sandbox
            .refusal("processor.waitUntilProcessed", &[late])
            .await
            .0,
        "SERVICE_NOT_RESPONDING"
    );
    assert_eq!(
        subscription.call("ping", vec![]).await.unwrap().as_bool(),
        Some(true)
    );
    subscription.call("unsubscribe", vec![]).await.unwrap();
    assert_eq!(
        subscription.call("ping", vec![]).await.unwrap().as_bool(),
        Some(false)
    );
    assert_eq!(
        api.events("main")
            .await
            .iter()
            .filter(|name| *name == "started")
            .count(),
        1
    );
}

fn apply(message: &Json, revision: &mut Json, state: &mut Json) {
    assert_eq!(
        (&message["type"], &message["from"]),
        (&json!("patch"), &*revision)
    );
    let patch: Patch = serde_json::from_value(message["patch"].clone()).unwrap();
    *state = patch.apply(state).unwrap();
    *revision = message["to"].clone();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_settings_of_sleep_outlive_the_server() {
    let mut hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"sleepAfter": "1h"})).await;
    sandbox.json("setKeepAlive", &[json!(true)]).await;
    sandbox.json("setSleepAfter", &[json!(1)]).await;
    sandbox.sh("true").await;
    drop(api);
    hutch.end(Signal::KILL);
    hutch.serve();
    let api = hutch.api().await;
    let sandbox = api.sandbox("main");
    let awake = || async {
        let described = sandbox.json("describe", &[]).await;
        described["awake"].clone()
    };
    // Some idle times pass and it is awake still, for one reason alone.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        let awake = awake().await;
        assert_eq!(awake["reasons"][0]["kind"], "keepAlive", "{awake}");
        assert_eq!(awake["sleepsAt"], Json::Null);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    sandbox.json("setKeepAlive", &[json!(false)]).await;
    let stopped = json!({"eventTypes": ["sandbox/stopped"]});
    api.stream("/sandboxes/main")
        .json("waitForEvent", &[stopped])
        .await;
    let described = sandbox.json("describe", &[]).await;
    assert_eq!(
        (&described["keepAlive"], &described["sleepAfter"]),
        (&json!(false), &json!("1s"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_at_it_all_the_time_keeps_nothing_awake() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"sleepAfter": 1})).await;
    let process = sandbox.json("startProcess", &[json!("sleep 600")]).await;
    let id = [process["id"].clone()];
    let begun = Instant::now();
    let mut looks = 0;
    while sandbox.json("describe", &[]).await["running"] == true {
        for look in [
            "listProcesses",
            "liveState.get",
            "processor.getRuntimeState",
        ] {
            sandbox.json(look, &[]).await;
        }
        sandbox.json("getProcess", &id).await;
        if let Err(error) = sandbox.call("getProcessLogs", &id).await {
            assert_eq!(error.code(), Some("PROCESS_NOT_FOUND"), "{error}");
        }
        looks += 1;
        let awake = sandbox.json("describe", &[]).await;
        assert!(
            begun.elapsed() < Duration::from_secs(15),
            "{looks}: {awake}"
        );
    }
    assert!(looks > 20, "{looks}");
}
