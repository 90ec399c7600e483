//! Functions that travel to the data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use capnweb::{ErrorValue, Limits, Object, Stub, Target, Value, codes};
use support::{End, eventually, methods, pair, pair_with, raw, within};

fn numbers(count: usize) -> Value {
    Value::Array((0..count).map(|number| (number as f64).into()).collect())
}

/// `list(n)`, `nested`, `objects`, `double(x)`, `none`, `one`; counts its calls.
fn main(calls: Arc<AtomicUsize>) -> Option<Arc<dyn Target>> {
    methods(move |path, args| {
        calls.fetch_add(1, Ordering::Relaxed);
        async move {
            Ok(match path.as_str() {
                "list" => numbers(args[0].as_u64().unwrap() as usize),
                "nested" => Value::Array(vec![numbers(2), numbers(3)]),
                "objects" => {
                    let object = |number: f64| {
                        Stub::function(move |args: Vec<Value>| async move {
                            Ok((number * args[0].as_f64().unwrap()).into())
                        })
                        .into()
                    };
                    Value::Array(vec![object(1.0), object(2.0)])
                }
                "double" => (args[0].as_f64().unwrap() * 2.0).into(),
                "none" => Value::Null,
                "one" => Value::Object([("a", 5)].into_iter().collect()),
                "wait" => std::future::pending().await,
                "large" => vec![7_u8; 1 << 20].into(),
                _ => return Err(ErrorValue::coded("NOPE", path)),
            })
        }
    })
}

async fn start() -> (End, End, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let (server, client) = pair(main(calls.clone()), None).await;
    (server, client, calls)
}

fn json(value: Result<Value, ErrorValue>) -> serde_json::Value {
    value.unwrap().to_json().unwrap()
}

#[tokio::test]
async fn each_element_is_mapped_and_nothing_is_left() {
    let (server, client, calls) = start().await;
    let api = client.main();
    let list = api.call("list", vec![3.into()]).stub();
    let mapped = list.map("", |map| {
        let doubled = map.call(&api, "double", vec![map.input().into_promise()]);
        let pair = [("from", map.input()), ("to", doubled)];
        Value::Object(
            pair.into_iter()
                .map(|(key, stub)| (key, stub.into_promise()))
                .collect::<Object>(),
        )
    });
    let expected =
        serde_json::json!([{"from": 0, "to": 0}, {"from": 1, "to": 2}, {"from": 2, "to": 4}]);
    assert_eq!(json(within(mapped).await), expected);
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    drop((list, api));
    eventually("tables are back to their base", || {
        let (near, far) = (server.connection.stats(), client.connection.stats());
        (
            near.imports,
            near.exports,
            near.pending_calls,
            near.pending_bytes,
        ) == (1, 1, 0, 0)
            && (far.imports, far.exports) == (1, 1)
    })
    .await;
}

#[tokio::test]
async fn a_map_may_stand_in_a_map_and_capture_from_around_both() {
    let (_server, client, _) = start().await;
    let api = client.main();
    let mapped = api.call("nested", vec![]).stub().map("", |map| {
        let outer = map.get(&map.input(), "");
        let _ = outer;
        let input = map.input();
        map.map(&input, "", |inner| {
            let doubled = inner.call(&api, "double", vec![inner.input().into_promise()]);
            Value::Array(vec![inner.input().into_promise(), doubled.into_promise()])
        })
        .into_promise()
    });
    let expected = serde_json::json!([[[0, 0], [1, 2]], [[0, 0], [1, 2], [2, 4]]]);
    assert_eq!(json(within(mapped).await), expected);
}

#[tokio::test]
async fn references_and_callbacks_can_be_called_in_a_map() {
    let (_server, client, _) = start().await;
    let api = client.main();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let callback = Stub::function(move |args| {
        count.fetch_add(args[0].as_u64().unwrap() as usize, Ordering::Relaxed);
        async { Ok(Value::Undefined) }
    });
    let mapped = api.call("objects", vec![]).stub().map("", |map| {
        let product = map.call(&map.input(), "", vec![10.into()]);
        // Its result is not used, and it runs all the same.
        map.call(&callback, "", vec![product.clone().into_promise()]);
        product.into_promise()
    });
    assert_eq!(json(within(mapped).await), serde_json::json!([10, 20]));
    assert_eq!(seen.load(Ordering::Relaxed), 30);
}

#[tokio::test]
async fn what_is_no_list_is_mapped_once_or_not_at_all() {
    let (_server, client, calls) = start().await;
    let api = client.main();
    let of = |stub: Stub, path: &str| {
        let api = api.clone();
        stub.map(path, move |map| {
            map.call(&api, "double", vec![map.input().into_promise()])
                .into_promise()
        })
    };
    let one = of(api.call("one", vec![]).stub(), "a");
    assert_eq!(json(within(one).await), serde_json::json!(10));
    let before = calls.load(Ordering::Relaxed);
    let none = of(api.call("none", vec![]).stub(), "");
    assert!(matches!(within(none).await, Ok(Value::Null)));
    assert_eq!(calls.load(Ordering::Relaxed), before + 1);
    // Here it is done at once, without a peer.
    let here = of(Stub::function(|_| async { Ok(1.into()) }), "");
    assert!(within(here).await.is_err(), "a function cannot be doubled");
}

#[tokio::test]
async fn errors_reject_the_map_alone() {
    let (_server, client, _) = start().await;
    let api = client.main();
    let failing = api
        .call("list", vec![2.into()])
        .stub()
        .map("", |map| map.call(&api, "nope", vec![]).into_promise());
    assert_eq!(within(failing).await.unwrap_err().code(), Some("NOPE"));
    let of_failing = api
        .call("nope", vec![])
        .stub()
        .map("", |map| map.input().into_promise());
    assert_eq!(within(of_failing).await.unwrap_err().code(), Some("NOPE"));
    let mut kept = None;
    let stream = api.call("one", vec![]).stub().map("", |map| {
        kept = Some(map.input());
        capnweb::ReadableStream::channel(1).1.into()
    });
    let error = within(stream).await.unwrap_err();
    assert!(error.message.contains("inside a mapper"), "{error}");
    // A variable is of no use outside.
    let error = within(kept.clone().unwrap().call("x", vec![]))
        .await
        .unwrap_err();
    assert!(error.message.contains("variable of a map"), "{error}");
    let sent = api.call("double", vec![kept.unwrap().into()]);
    assert!(within(sent).await.is_err());
    assert!(within(api.call("one", vec![])).await.is_ok());
}

async fn refused(map: &str, limits: Limits) -> String {
    let (server, mut peer) = raw(main(Arc::default()), limits).await;
    peer.send(r#"["push",["pipeline",0,["list"],[1000]]]"#)
        .await;
    peer.send(&format!(r#"["push",["remap",1,[],[["import",0]],{map}]]"#))
        .await;
    peer.send(r#"["pull",2]"#).await;
    let answer = peer.next().await;
    drop(server);
    answer
}

#[tokio::test]
async fn a_hostile_map_costs_no_more_than_its_limits() {
    let limits = Limits::default();
    // More instructions than allowed, over all elements.
    let many = format!("[{}1]", "1,".repeat(40));
    assert!(
        refused(&many, limits)
            .await
            .contains(codes::VALUE_TOO_COMPLEX)
    );
    // Long instructions, read for each element.
    let long = format!("[\"{}\"]", "x".repeat(1 << 20));
    assert!(
        refused(&long, limits)
            .await
            .contains(codes::VALUE_TOO_COMPLEX)
    );
    // Maps in maps in maps.
    let mut nested = "[1]".to_owned();
    for _ in 0..2000 {
        nested = format!("[[\"remap\",0,[],[],{nested}]]");
    }
    assert!(
        refused(&nested, limits)
            .await
            .contains(codes::VALUE_TOO_COMPLEX)
    );
    // Each doubles the one before.
    let doubling: Vec<_> = (0..60)
        .map(|step| format!("[[[\"pipeline\",{step}],[\"pipeline\",{step}]]]"))
        .collect();
    let answer = refused(&format!("[{}]", doubling.join(",")), limits).await;
    assert!(answer.starts_with("[\"reject\",2,"), "{answer:.80}");
    // More calls than may be open.
    let mut few = limits;
    few.pending_calls = 100;
    let calls = r#"[["pipeline",-1,["wait"],[]]]"#;
    assert!(refused(calls, few).await.contains(codes::TOO_MANY_CALLS));
    // The same large value for each element.
    let mut small = limits;
    small.pending_bytes = 8 << 20;
    small.result_bytes = 64 << 20;
    let large = r#"[["pipeline",-1,["large"],[]]]"#;
    let answer = refused(large, small).await;
    assert!(answer.starts_with("[\"reject\",2,"), "{answer:.80}");
    // Forbidden and malformed.
    for map in [
        "[]",
        "[[\"export\",-1]]",
        "[[\"readable\",1]]",
        "[[\"pipeline\",5]]",
        "[nonsense]",
    ] {
        let answer = refused(map, limits).await;
        assert!(
            answer.starts_with("[\"reject\",2,") || answer.starts_with("[\"abort\""),
            "{map}: {answer}"
        );
    }
}

#[tokio::test]
async fn dropping_a_map_gives_its_calls_up() {
    let (server, client) = pair_with(main(Arc::default()), None, Limits::default()).await;
    let api = client.main();
    let mapped = api
        .call("list", vec![50.into()])
        .stub()
        .map("", |map| map.call(&api, "wait", vec![]).into_promise());
    eventually("the calls wait", || {
        server.connection.stats().pending_calls >= 50
    })
    .await;
    drop(mapped);
    eventually("the calls are gone", || {
        let stats = server.connection.stats();
        (stats.pending_calls, stats.pending_bytes, stats.exports) == (0, 0, 1)
    })
    .await;
}
