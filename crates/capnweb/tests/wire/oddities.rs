//! What is legal and seldom.

use std::sync::Arc;

use crate::support::{eventually, methods, raw, within};
use capnweb::{CallFuture, CloseReason, Limits, Object, Path, Stub, Target, Value, codes};
use futures_util::FutureExt as _;

use crate::start;

#[tokio::test]
async fn answers_to_what_was_released_are_taken_and_let_go() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["resolve",77,{"f":["export",-3]}]"#).await;
    peer.send(r#"["reject",78,["error","Error","x"]]"#).await;
    peer.expect(r#"["release",-3,1]"#).await;
    peer.send(r#"["push",["pipeline",0,["hello"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.expect(r#"["resolve",1,"world"]"#).await;
}

#[tokio::test]
async fn promises_of_the_peer_are_awaited_before_the_call() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["echo"],[{"a":["promise",-1]}]]]"#)
        .await;
    peer.send(r#"["pull",1]"#).await;
    peer.send(r#"["resolve",-1,5]"#).await;
    peer.expect(r#"["release",-1,1]"#).await;
    peer.expect(r#"["resolve",1,{"a":5}]"#).await;
}

#[tokio::test]
async fn a_long_chain_of_queued_calls_is_let_go_of_without_recursion() {
    let (server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["wait"],[]]]"#).await;
    for id in 1..12_000 {
        peer.send(&format!(r#"["push",["pipeline",{id},["x"],[]]]"#))
            .await;
    }
    for id in 1..12_000 {
        peer.send(&format!(r#"["release",{id},1]"#)).await;
    }
    eventually("only the last is left", || {
        server.connection.stats().exports == 2
    })
    .await;
    assert_eq!(server.connection.stats().pending_calls, 12_000);
    peer.send(r#"["release",12000,1]"#).await;
    eventually("all is let go of", || {
        server.connection.stats().pending_calls == 0
    })
    .await;
}

/// Longer than the stack of a thread is deep.
const LONG: i64 = 60_000;

#[tokio::test]
async fn promises_that_come_to_promises_are_let_go_of_without_recursion() {
    let (server, mut peer) = start().await;
    peer.send(r#"["push",{"a":["promise",-1]}]"#).await;
    for id in 1..LONG {
        peer.send(&format!(r#"["resolve",-{id},["promise",-{}]]"#, id + 1))
            .await;
    }
    peer.send(r#"["release",1,1]"#).await;
    eventually("all is let go of", || {
        server.connection.stats().exports == 1
    })
    .await;
}

#[tokio::test]
async fn results_that_hold_each_other_are_let_go_of_without_recursion() {
    let (server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["hello"],[]]]"#).await;
    for id in 1..LONG {
        peer.send(&format!(r#"["push",{{"a":["pipeline",{id}]}}]"#))
            .await;
    }
    for id in 1..=LONG {
        peer.send(&format!(r#"["release",{id},1]"#)).await;
    }
    eventually("all is let go of", || {
        server.connection.stats().exports == 1
    })
    .await;
}

#[tokio::test]
async fn streams_that_hold_each_other_are_let_go_of_without_recursion() {
    let (server, mut peer) = start().await;
    peer.send(r#"["pipe"]"#).await;
    let mut last = 1;
    for id in (2..3 * LONG).step_by(3) {
        for text in [
            r#"["pipe"]"#.to_owned(),
            format!(r#"["stream",["pipeline",{id},["write"],[["readable",{last}]]]]"#),
            format!(r#"["stream",["pipeline",{id},["close"],[]]]"#),
            format!(r#"["release",{last},1]"#),
        ] {
            peer.send(&text).await;
        }
        last = id;
    }
    let next = last + 3;
    for text in [
        format!(r#"["push",{{"a":["readable",{last}]}}]"#),
        format!(r#"["release",{last},1]"#),
        format!(r#"["release",{next},1]"#),
    ] {
        peer.send(&text).await;
    }
    eventually("all is let go of", || {
        server.connection.stats().exports == 1
    })
    .await;
    assert_eq!(server.connection.stats().stream_bytes, 0);
}

#[tokio::test]
async fn values_that_grow_by_substitution_stay_bounded_in_depth() {
    let (_server, mut peer) = start().await;
    let (open, close) = ("[[".repeat(200), "]]".repeat(200));
    peer.send(&format!(
        r#"["push",["pipeline",0,["echo"],[{open}1{close}]]]"#
    ))
    .await;
    for id in 1..40 {
        peer.send(&format!(
            r#"["push",["pipeline",0,["echo"],[{open}["pipeline",{id}]{close}]]]"#
        ))
        .await;
    }
    peer.send(r#"["pull",40]"#).await;
    assert!(peer.next().await.contains(codes::VALUE_TOO_COMPLEX));
}

#[tokio::test]
async fn results_that_refer_to_each_other_in_a_circle_hang_nobody() {
    /// Gives back the promise of what the callback comes to.
    struct Loop;
    impl Target for Loop {
        fn call(self: Arc<Self>, _: Path, args: Vec<Value>) -> CallFuture {
            let promise = args[0].as_stub().unwrap().call((), vec![]).stub();
            async move { Ok(Value::Promise(promise)) }.boxed()
        }
    }
    let (server, mut peer) = raw(Some(Arc::new(Loop)), Limits::default()).await;
    peer.send(r#"["push",["pipeline",0,["x"],[["export",-1]]]]"#)
        .await;
    peer.expect(r#"["push",["pipeline",-1,[],[]]]"#).await;
    peer.send(r#"["resolve",1,{"again":["pipeline",1]}]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.send(r#"["push",["pipeline",0,["x"],[["export",-2]]]]"#)
        .await;
    eventually("the session still reads", || {
        server.connection.stats().exports >= 3
    })
    .await;
}

#[tokio::test]
async fn every_literal_reads_and_writes() {
    let (_server, mut peer) = start().await;
    let cases = [
        ("1.5", "1.5"),
        ("-0", "0"),
        ("1e21", "1e+21"),
        ("9007199254740991", "9007199254740991"),
        (
            r#""a\"\\\n\u0001é\ud83d\ude00""#,
            "\"a\\\"\\\\\\n\\u0001é😀\"",
        ),
        (r#""\ud800x""#, "\"\u{fffd}x\""),
        (r#"["inf"]"#, r#"["inf"]"#),
        (r#"["-inf"]"#, r#"["-inf"]"#),
        (r#"["nan"]"#, r#"["nan"]"#),
        (r#"["undefined"]"#, r#"["undefined"]"#),
        (r#"["bigint","-0012"]"#, r#"["bigint","-12"]"#),
        (r#"["date",1700000000000]"#, r#"["date",1700000000000]"#),
        (r#"["date",null]"#, r#"["date",null]"#),
        (r#"["bytes","AQI="]"#, r#"["bytes","AQI"]"#),
        (r#"["bytes","AQID","Uint8Array"]"#, r#"["bytes","AQID"]"#),
        (r#"["bytes",""]"#, r#"["bytes",""]"#),
        (r#"["url","https://x.example/"]"#, r#""https://x.example/""#),
        (
            r#"["headers",[["a","b"],["a","c"]]]"#,
            r#"["headers",[["a","b"],["a","c"]]]"#,
        ),
        (r#"["headers",[]]"#, r#"["headers",[]]"#),
        (
            r#"["request","https://x/",{"headers":[["a","b"]],"body":["bytes","AQ"],"duplex":"half","method":"PUT","mode":"same-origin"}]"#,
            r#"["request","https://x/",{"method":"PUT","headers":[["a","b"]],"body":["bytes","AQ"],"duplex":"half","mode":"same-origin"}]"#,
        ),
        (
            r#"["response","text",{"status":404,"statusText":"no","headers":[["a","b"]]}]"#,
            r#"["response","text",{"status":404,"statusText":"no","headers":[["a","b"]]}]"#,
        ),
        (
            r#"["response",null,{}]"#,
            r#"["response",null,{"status":200}]"#,
        ),
        (
            r#"["error","RangeError","m"]"#,
            r#"["error","RangeError","m"]"#,
        ),
        (
            r#"["error","Strange","m",null,{"name":"n","code":"C"}]"#,
            r#"["error","Error","m",null,{"code":"C"}]"#,
        ),
        (
            r#"["error","Error","m","stack"]"#,
            r#"["error","Error","m","stack"]"#,
        ),
        (r#"[[1,[["x"]],{"a":[[]]}]]"#, r#"[[1,[["x"]],{"a":[[]]}]]"#),
    ];
    for (index, (sent, received)) in cases.iter().enumerate() {
        let id = index + 1;
        peer.send(&format!(r#"["push",["pipeline",0,["echo"],[{sent}]]]"#))
            .await;
        peer.send(&format!(r#"["pull",{id}]"#)).await;
        peer.expect(&format!(r#"["resolve",{id},{received}]"#))
            .await;
    }
}

#[tokio::test]
async fn a_blob_travels_as_a_stream() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["pipe"]"#).await;
    peer.send(r#"["push",["pipeline",0,["echo"],[["blob","text/plain",["readable",1]]]]]"#)
        .await;
    peer.send(r#"["pull",2]"#).await;
    peer.expect(r#"["pipe"]"#).await;
    peer.expect(r#"["resolve",2,["blob","text/plain",["readable",1]]]"#)
        .await;
}

#[tokio::test]
async fn an_exported_object_keeps_its_id_until_it_is_released() {
    let object = Stub::function(|_| async { Ok(Value::Undefined) });
    let main = methods(move |_, _| {
        let object = object.clone();
        async move {
            let mut result = Object::new();
            result.insert("a", object.clone());
            result.insert("b", object);
            Ok(Value::Object(result))
        }
    });
    let (server, mut peer) = raw(main, Limits::default()).await;
    peer.send(r#"["push",["pipeline",0,["x"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.expect(r#"["resolve",1,{"a":["export",-1],"b":["export",-1]}]"#)
        .await;
    peer.send(r#"["release",1,1]"#).await;
    peer.send(r#"["push",["pipeline",0,["x"],[]]]"#).await;
    peer.send(r#"["pull",2]"#).await;
    peer.expect(r#"["resolve",2,{"a":["export",-1],"b":["export",-1]}]"#)
        .await;
    peer.send(r#"["release",2,1]"#).await;
    peer.send(r#"["release",-1,4]"#).await;
    peer.send(r#"["push",["pipeline",0,["x"],[]]]"#).await;
    peer.send(r#"["pull",3]"#).await;
    peer.expect(r#"["resolve",3,{"a":["export",-2],"b":["export",-2]}]"#)
        .await;
    assert_eq!(server.connection.stats().exports, 3);
}

#[tokio::test]
async fn a_vanished_peer_ends_the_session() {
    let (server, peer) = start().await;
    drop(peer);
    let reason = within(server.driver).await.unwrap();
    assert!(
        matches!(
            reason,
            CloseReason::PeerClosed { .. } | CloseReason::Failed(_)
        ),
        "{reason:?}"
    );
    assert!(server.connection.is_closed());
}

/// Random but plausible messages: the session goes on or ends, and gives up everything it held.
#[test]
fn any_sequence_of_messages_leaves_nothing_behind() {
    use proptest::prelude::*;

    let id = || -4_i64..12;
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("\"text\"".to_owned()),
        Just("[\"bytes\",\"AQID\"]".to_owned()),
        id().prop_map(|id| format!("[\"export\",{id}]")),
        id().prop_map(|id| format!("[\"promise\",{id}]")),
        id().prop_map(|id| format!("[\"writable\",{id}]")),
        id().prop_map(|id| format!("[\"readable\",{id}]")),
        id().prop_map(|id| format!("[\"pipeline\",{id}]")),
        id().prop_map(|id| format!("[\"import\",{id},[\"a\"]]")),
        Just("[\"error\",\"Error\",\"m\",null,{\"a\":1}]".to_owned()),
    ];
    let path = prop::sample::select(vec![
        "",
        "\"echo\"",
        "\"wait\"",
        "\"call\"",
        "\"read\"",
        "\"stub\"",
        "\"write\"",
        "\"close\"",
        "\"abort\"",
        "\"drain\"",
        "\"a\",0",
    ]);
    let expression = leaf.prop_recursive(3, 16, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[[{}]]", items.join(","))),
            inner.clone().prop_map(|inner| format!("{{\"a\":{inner}}}")),
            (id(), path.clone(), prop::collection::vec(inner, 0..3)).prop_map(
                |(id, path, args)| format!("[\"pipeline\",{id},[{path}],[{}]]", args.join(","))
            ),
        ]
    });
    let message = prop_oneof![
        4 => expression.clone().prop_map(|expression| format!("[\"push\",{expression}]")),
        2 => expression.clone().prop_map(|expression| format!("[\"stream\",{expression}]")),
        1 => Just("[\"pipe\"]".to_owned()),
        2 => id().prop_map(|id| format!("[\"pull\",{id}]")),
        1 => (id(), 0_u64..3).prop_map(|(id, count)| format!("[\"release\",{id},{count}]")),
        1 => (id(), expression.clone()).prop_map(|(id, expression)| format!("[\"resolve\",{id},{expression}]")),
        1 => (id(), expression).prop_map(|(id, expression)| format!("[\"reject\",{id},{expression}]")),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    proptest!(ProptestConfig::with_cases(200), |(messages in prop::collection::vec(message, 1..30))| {
        runtime.block_on(async {
            use futures_util::SinkExt as _;
            let (server, mut peer) = start().await;
            for text in messages {
                // The session may have ended before.
                let _ = peer.0.send(tokio_tungstenite::tungstenite::Message::text(text)).await;
            }
            drop(peer);
            let connection = server.connection.clone();
            within(server.driver).await.unwrap();
            eventually("everything is given up", || {
                let stats = connection.stats();
                (stats.imports, stats.exports, stats.pending_calls) == (1, 0, 0) && stats.stream_bytes == 0
            })
            .await;
        });
    });
}
