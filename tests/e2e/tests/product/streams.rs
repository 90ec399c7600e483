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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_filters_and_expected_offsets() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let notes = api.stream("/notes");
    for i in 1..=6 {
        let kind = if i % 2 == 0 { "even" } else { "odd" };
        notes
            .json(
                "append",
                &[json!({"type": kind, "payload": {"i": i}, "offset": i})],
            )
            .await;
    }
    let offsets = |events: &serde_json::Value| -> Vec<u64> {
        let events = events.as_array().unwrap();
        events
            .iter()
            .map(|event| event["offset"].as_u64().unwrap())
            .collect()
    };
    for (query, expected) in [
        (json!({}), vec![1, 2, 3, 4, 5, 6]),
        (json!({"eventTypes": "*"}), vec![1, 2, 3, 4, 5, 6]),
        (json!({"eventTypes": []}), vec![]),
        (
            json!({"eventTypes": ["even"], "order": "desc", "limit": 2}),
            vec![6, 4],
        ),
        (
            json!({"afterOffset": 1, "beforeOffset": 5, "eventTypes": ["odd", "none"]}),
            vec![3],
        ),
    ] {
        assert_eq!(
            offsets(&notes.json("getEvents", &[query.clone()]).await),
            expected,
            "{query}"
        );
    }
    let (code, wrong) = notes
        .refusal("append", &[json!({"type": "x", "offset": 3})])
        .await;
    assert_eq!(
        (code.as_str(), wrong.message.as_str()),
        ("STREAM_OFFSET_CONFLICT", "expected next offset 3, found 7")
    );
    for (limit, text) in [
        (json!(0), "getEvents limit must be a positive integer."),
        (json!(501), "getEvents limit must be at most 500."),
    ] {
        let refused = notes.refusal("getEvents", &[json!({"limit": limit})]).await;
        assert_eq!(refused.1.message, text);
    }
    let (_, late) = notes
        .refusal("waitForEvent", &[json!({"afterOffset": 6, "timeoutMs": 1})])
        .await;
    assert!(
        late.message.starts_with("stream-wait-timeout: ")
            && late.message.contains("Timed out waiting for stream event"),
        "{}",
        late.message
    );
    let page = notes.json("getEventPage", &[json!({"limit": 4})]).await;
    assert_eq!(
        (
            offsets(&page["events"]),
            &page["streamMaxOffset"],
            &page["more"]
        ),
        (vec![1, 2, 3, 4], &json!(6), &json!(true))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_much_for_one_answer_comes_in_pages() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let notes = api.stream("/notes");
    // Each byte takes six as JSON, which is the worst there is.
    let event = json!({"type": "n", "payload": {"x": "\u{1}".repeat(10_000)}});
    for _ in 0..20 {
        notes.json("append", &vec![event.clone(); 10]).await;
    }
    let (code, refused) = notes.refusal("getEvents", &[]).await;
    assert_eq!(code, "PAYLOAD_TOO_LARGE", "{}", refused.message);
    let mut after = 0;
    let mut pages = 0;
    loop {
        let page = notes
            .json("getEventPage", &[json!({"afterOffset": after})])
            .await;
        pages += 1;
        for event in page["events"].as_array().unwrap() {
            assert_eq!(event["offset"], after + 1);
            after += 1;
        }
        if page["more"] == false {
            break;
        }
    }
    assert_eq!(after, 200);
    assert!(pages > 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_that_ended_says_why_and_from_where() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let notes = api.stream("/notes");
    notes
        .json("append", &[json!({"type": "n"}), json!({"type": "n"})])
        .await;
    let failing = Stub::function(|_| async { Err(capnweb::ErrorValue::new("Error", "no room")) });
    let mut options = capnweb::Object::new();
    options.insert("processEventBatch", Value::Stub(failing));
    options.insert("replayAfterOffset", Value::Number(1.0));
    let tail = notes
        .0
        .call("subscribe", vec![Value::Object(options)])
        .await
        .unwrap();
    let tail = hutch_e2e::Handle(tail.as_stub().unwrap().clone());
    let ended = loop {
        match tail.call("ping", &[]).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(ended.message.contains("no room"), "{}", ended.message);
    assert!(
        hutch_e2e::message(&ended).contains("\"replayAfterOffset\":1"),
        "{}",
        hutch_e2e::message(&ended)
    );
}
