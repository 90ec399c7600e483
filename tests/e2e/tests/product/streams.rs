use capnweb::{Stub, Value};
use hutch_e2e::Hutch;
use serde_json::json;
use tokio::sync::mpsc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_append_to_their_own_streams_alone() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let notes = api.stream("/notes");
    let appended = notes
        .json(
            "append",
            &[json!({"type": "note/added", "payload": {"text": "a"}, "idempotencyKey": "1"})],
        )
        .await;
    assert_eq!(
        (&appended[0]["offset"], &appended[0]["payload"]["text"]),
        (&json!(1), &json!("a"))
    );
    let again = notes
        .json(
            "append",
            &[json!({"type": "note/added", "payload": {"text": "a"}, "idempotencyKey": "1"})],
        )
        .await;
    assert_eq!(again[0]["offset"], 1);
    let other = notes
        .refusal(
            "append",
            &[json!({"type": "note/added", "payload": {"text": "b"}, "idempotencyKey": "1"})],
        )
        .await;
    assert_eq!(other.0, "IDEMPOTENCY_CONFLICT");
    for path in [
        "/",
        "/sandboxes",
        "/sandboxes/x",
        "/secrets/x",
        "/notes/../sandboxes",
    ] {
        assert_eq!(
            api.stream(path)
                .refusal("append", &[json!({"type": "a"})])
                .await
                .0,
            "FORBIDDEN",
            "{path}"
        );
    }
    for kind in [
        "sandbox/started",
        "stream/x",
        "project/x",
        "secret/x",
        "egress/x",
    ] {
        assert_eq!(
            notes.refusal("append", &[json!({"type": kind})]).await.0,
            "FORBIDDEN_EVENT_TYPE",
            "{kind}"
        );
    }
    let big = json!({"type": "a", "payload": {"x": "y".repeat(70_000)}});
    assert_eq!(notes.refusal("append", &[big]).await.0, "PAYLOAD_TOO_LARGE");
    assert_eq!(api.stream("/typo").json("getEvents", &[]).await, json!([]));
    assert_eq!(
        api.stream("/typo").json("head", &[]).await,
        json!(null),
        "a read makes no stream"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_replays_then_follows_without_a_gap() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let notes = api.stream("/notes");
    for i in 0..5 {
        notes
            .json("append", &[json!({"type": "n", "payload": {"i": i}})])
            .await;
    }
    let (heard, mut batches) = mpsc::channel(64);
    let listener = Stub::function(move |args| {
        let heard = heard.clone();
        async move {
            let batch = args[0].to_json().unwrap_or_default();
            let _ = heard.send(batch).await;
            Ok(Value::Undefined)
        }
    });
    let options = Value::from_json(json!({"replayAfterOffset": 2}));
    let Value::Object(mut options) = options else {
        panic!()
    };
    options.insert("processEventBatch", Value::Stub(listener));
    let handle = notes
        .0
        .call("subscribe", vec![Value::Object(options)])
        .await
        .unwrap();
    for i in 5..10 {
        notes
            .json("append", &[json!({"type": "n", "payload": {"i": i}})])
            .await;
    }
    let mut offsets = Vec::new();
    while offsets.len() < 8 {
        let batch = batches.recv().await.unwrap();
        offsets.extend(
            batch["events"]
                .as_array()
                .unwrap()
                .iter()
                .map(|event| event["offset"].as_u64().unwrap()),
        );
    }
    assert_eq!(offsets, (3..=10).collect::<Vec<u64>>());
    let handle = hutch_e2e::Handle(handle.as_stub().unwrap().clone());
    assert_eq!(handle.json("ping", &[]).await, true);
    handle.json("close", &[]).await;
    assert_eq!(handle.json("ping", &[]).await, false);
}
