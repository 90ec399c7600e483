//! The exact messages, and what a hostile peer can do with them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;

use capnweb::{
    CallFuture, CloseReason, ErrorValue, Limits, Object, Path, ReadableStream, Stub, Target, Value,
    codes,
};
use futures_util::FutureExt as _;
use support::{End, Raw, eventually, methods, raw, within};

/// `echo` gives its first argument back, `wait` never ends, the rest is named.
fn main() -> Option<Arc<dyn Target>> {
    methods(|path, mut args| async move {
        match path.as_str() {
            "echo" => Ok(if args.is_empty() {
                Value::Undefined
            } else {
                args.remove(0)
            }),
            "wait" => std::future::pending().await,
            "hello" => Ok("world".into()),
            "big" => Ok(vec![0_u8; 30 << 20].into()),
            "stub" => Ok(Stub::function(|_| async { Ok("called".into()) }).into()),
            "read" => {
                let (writer, stream) = ReadableStream::channel(1024);
                tokio::spawn(async move {
                    writer.write(b"ab".to_vec()).await?;
                    writer.close();
                    Ok::<_, capnweb::Canceled>(())
                });
                Ok(stream.into())
            }
            "drain" => {
                let Some(Value::Readable(mut stream)) = args.pop() else {
                    return Err(ErrorValue::type_error("no stream"));
                };
                let mut bytes = 0;
                while let Some(chunk) = stream.next().await {
                    bytes += chunk?.as_bytes().map_or(0, |bytes| bytes.len());
                }
                Ok(Value::Number(bytes as f64))
            }
            "call" => {
                args.remove(0)
                    .as_stub()
                    .unwrap()
                    .call((), vec![1.into()])
                    .await
            }
            _ => Err(capnweb::not_a_function(&[capnweb::Key::Name(path)])),
        }
    })
}

async fn start() -> (End, Raw) {
    raw(main(), Limits::default()).await
}

#[tokio::test]
async fn a_call_and_its_result() {
    let (server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["hello"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.expect(r#"["resolve",1,"world"]"#).await;
    peer.send(r#"["release",1,1]"#).await;
    peer.send(r#"["push",["pipeline",0,["nope"],[]]]"#).await;
    peer.send(r#"["pull",2]"#).await;
    peer.expect(r#"["reject",2,["error","TypeError","'nope' is not a function."]]"#)
        .await;
    assert_eq!(server.connection.stats().exports, 2);
}

#[tokio::test]
async fn a_result_stream_and_its_messages() {
    let (server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["read"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.expect(r#"["pipe"]"#).await;
    peer.expect(r#"["resolve",1,["readable",1]]"#).await;
    peer.send(r#"["release",1,1]"#).await;
    peer.expect(r#"["stream",["pipeline",1,["write"],[["bytes","YWI"]]]]"#)
        .await;
    peer.send(r#"["resolve",2,["undefined"]]"#).await;
    peer.expect(r#"["stream",["pipeline",1,["close"],[]]]"#)
        .await;
    peer.send(r#"["resolve",3,["undefined"]]"#).await;
    peer.expect(r#"["release",1,1]"#).await;
    assert_eq!(
        (
            server.connection.stats().imports,
            server.connection.stats().exports
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn a_refused_write_cancels_and_releases_the_pipe() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["read"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    peer.expect(r#"["pipe"]"#).await;
    peer.expect(r#"["resolve",1,["readable",1]]"#).await;
    assert!(peer.next().await.starts_with(r#"["stream""#));
    peer.send(r#"["reject",2,["error","Error","no more"]]"#)
        .await;
    // The close may have been on its way.
    let mut next = peer.next().await;
    if next.starts_with(r#"["stream""#) {
        next = peer.next().await;
    }
    assert_eq!(next, r#"["release",1,1]"#);
}

#[tokio::test]
async fn an_argument_stream_and_its_acknowledgements() {
    let (server, mut peer) = start().await;
    peer.send(r#"["pipe"]"#).await;
    peer.send(r#"["stream",["pipeline",1,["write"],[["bytes","AQI"]]]]"#)
        .await;
    peer.send(r#"["push",["pipeline",0,["hello"],[]]]"#).await;
    peer.send(r#"["pull",3]"#).await;
    // Nobody has read the chunk: no acknowledgement yet.
    peer.expect(r#"["resolve",3,"world"]"#).await;
    assert!(server.connection.stats().stream_bytes > 0);
    peer.send(r#"["push",["pipeline",0,["drain"],[["readable",1]]]]"#)
        .await;
    peer.send(r#"["pull",4]"#).await;
    peer.expect(r#"["resolve",2,["undefined"]]"#).await;
    peer.send(r#"["stream",["pipeline",1,["close"],[]]]"#).await;
    peer.expect(r#"["resolve",5,["undefined"]]"#).await;
    peer.expect(r#"["resolve",4,2]"#).await;
    assert_eq!(server.connection.stats().stream_bytes, 0);
}

#[tokio::test]
async fn a_pipe_released_without_close_ends_with_an_error() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["pipe"]"#).await;
    peer.send(r#"["push",["pipeline",0,["drain"],[["readable",1]]]]"#)
        .await;
    peer.send(r#"["pull",2]"#).await;
    peer.send(r#"["release",1,1]"#).await;
    let message = peer.next().await;
    assert!(
        message.starts_with(
            r#"["reject",2,["error","Error","WritableStream RPC stub was disposed without calling close()""#
        ),
        "{message}"
    );
}

#[tokio::test]
async fn a_callback_is_called_and_released_with_its_count() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["call"],[["export",-1],["export",-1]]]]"#)
        .await;
    peer.expect(r#"["push",["pipeline",-1,[],[1]]]"#).await;
    peer.expect(r#"["pull",1]"#).await;
    peer.send(r#"["resolve",1,["undefined"]]"#).await;
    let mut left = vec![peer.next().await, peer.next().await];
    left.sort();
    assert_eq!(left, [r#"["release",-1,2]"#, r#"["release",1,1]"#]);
}

#[tokio::test]
async fn explicitly_undefined_options_count_as_absent() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["echo"],[{"encoding":["undefined"],"b":[[]],"__proto__":1,"toJSON":[["x"]]}]]]"#)
        .await;
    peer.send(r#"["pull",1]"#).await;
    peer.expect(r#"["resolve",1,{"encoding":["undefined"],"b":[[]]}]"#)
        .await;
}

#[tokio::test]
async fn every_push_takes_its_place_also_one_that_is_refused() {
    let (_server, mut peer) = raw(main(), {
        let mut limits = Limits::default();
        limits.depth = 8;
        limits.bigint_digits = 4;
        limits
    })
    .await;
    let deep = format!("{}1{}", "[[".repeat(9), "]]".repeat(9));
    peer.send(&format!(r#"["push",["pipeline",0,["echo"],[{deep}]]]"#))
        .await;
    peer.send(r#"["push",["pipeline",0,["echo"],[["bigint","12345"]]]]"#)
        .await;
    peer.send(r#"["push",["remap",0,[],[["export",-9]],[["pipeline",0,[]]]]]"#)
        .await;
    peer.send(r#"["push",["pipeline",0,["hello"],[]]]"#).await;
    for id in 1..=4 {
        peer.send(&format!(r#"["pull",{id}]"#)).await;
    }
    let mut messages = Vec::new();
    for _ in 0..5 {
        messages.push(peer.next().await);
    }
    messages.sort();
    assert!(
        messages[0].starts_with(r#"["reject",1,"#)
            && messages[0].contains(codes::VALUE_TOO_COMPLEX)
    );
    assert!(
        messages[1].starts_with(r#"["reject",2,"#)
            && messages[1].contains(codes::VALUE_TOO_COMPLEX)
    );
    assert!(messages[2].starts_with(r#"["reject",3,"#) && messages[2].contains(codes::UNSUPPORTED));
    assert_eq!(messages[3], r#"["release",-9,1]"#);
    assert_eq!(messages[4], r#"["resolve",4,"world"]"#);
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_its_call_only() {
    let (_server, mut peer) = start().await;
    peer.send(r#"["push",["pipeline",0,["big"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    assert!(peer.next().await.contains(codes::MESSAGE_TOO_LARGE));
    peer.send(r#"["push",["pipeline",0,["hello"],[]]]"#).await;
    peer.send(r#"["pull",2]"#).await;
    peer.expect(r#"["resolve",2,"world"]"#).await;
}

#[tokio::test]
async fn more_pending_calls_than_allowed_are_refused_one_by_one() {
    let (server, mut peer) = raw(main(), {
        let mut limits = Limits::default();
        limits.pending_calls = 3;
        limits
    })
    .await;
    peer.send(r#"["push",["pipeline",0,["wait"],[]]]"#).await;
    // Two may wait for the first one's result, the next may not.
    for _ in 0..3 {
        peer.send(r#"["push",["pipeline",1,["x"],[]]]"#).await;
    }
    peer.send(r#"["pull",4]"#).await;
    assert!(peer.next().await.contains(codes::TOO_MANY_CALLS));
    // Wider limits hold for the calls that follow.
    server.connection.set_limits(Limits::default());
    peer.send(r#"["push",["pipeline",0,["hello"],[]]]"#).await;
    peer.send(r#"["pull",5]"#).await;
    peer.expect(r#"["resolve",5,"world"]"#).await;
}

#[tokio::test]
async fn pending_arguments_and_unreleased_results_are_bounded() {
    let (server, mut peer) = raw(main(), {
        let mut limits = Limits::default();
        limits.pending_bytes = 2000;
        limits.result_bytes = 3000;
        limits
    })
    .await;
    let text = "x".repeat(1200);
    peer.send(&format!(r#"["push",["pipeline",0,["wait"],["{text}"]]]"#))
        .await;
    peer.send(&format!(r#"["push",["pipeline",0,["wait"],["{text}"]]]"#))
        .await;
    peer.send(r#"["pull",2]"#).await;
    assert!(peer.next().await.contains(codes::TOO_MANY_CALLS));
    peer.send(r#"["release",1,1]"#).await;
    eventually("the released call is dropped", || {
        server.connection.stats().pending_calls == 0
    })
    .await;
    for id in 3..=5 {
        // Each one ends before the next starts.
        let short = "y".repeat(1000);
        peer.send(&format!(r#"["push",["pipeline",0,["echo"],["{short}"]]]"#))
            .await;
        peer.send(&format!(r#"["pull",{id}]"#)).await;
        let message = peer.next().await;
        assert_eq!(
            message.contains(codes::RESULTS_NOT_RELEASED),
            id == 5,
            "{id}: {message}"
        );
    }
}

#[tokio::test]
async fn a_sender_that_ignores_acknowledgements_loses_its_stream_only() {
    let (server, mut peer) = raw(main(), {
        let mut limits = Limits::default();
        limits.stream_bytes = 1000;
        limits
    })
    .await;
    peer.send(r#"["pipe"]"#).await;
    let chunk = "A".repeat(400);
    for _ in 0..4 {
        peer.send(&format!(
            r#"["stream",["pipeline",1,["write"],[["bytes","{chunk}"]]]]"#
        ))
        .await;
    }
    for _ in 0..4 {
        assert!(peer.next().await.contains(codes::STREAM_OVERFLOW));
    }
    assert_eq!(server.connection.stats().stream_bytes, 0);
    peer.send(r#"["push",["pipeline",0,["hello"],[]]]"#).await;
    peer.send(r#"["pull",6]"#).await;
    peer.expect(r#"["resolve",6,"world"]"#).await;
}

#[tokio::test]
async fn full_tables_end_the_session() {
    for message in [
        r#"["pipe"]"#,
        r#"["push",1]"#,
        r#"["push",["pipeline",0,["echo"],[["export",-NNN]]]]"#,
    ] {
        let (server, mut peer) = raw(main(), {
            let mut limits = Limits::default();
            limits.exports = 20;
            limits.imports = 20;
            limits
        })
        .await;
        for id in 1..=40 {
            peer.send(&message.replace("NNN", &id.to_string())).await;
        }
        assert!(peer.next().await.contains(codes::TABLE_FULL));
        assert!(peer.next().await.starts_with("close 3000 "));
        drop(peer);
        assert!(matches!(server.ended().await, CloseReason::Aborted(_)));
    }
}

#[tokio::test]
async fn breaches_of_the_protocol_end_the_session_with_a_typed_error() {
    let deep_text = "[".repeat(100_000);
    let cases = [
        "",
        "nonsense",
        "{}",
        "[]",
        "[1]",
        r#"["unknown",1]"#,
        r#"["push"]"#,
        r#"["push",1"#,
        r#"["push",1] x"#,
        r#"["push",["unknown",1]]"#,
        r#"["push",[]]"#,
        r#"["push",[1]]"#,
        r#"["push",[[1],2]]"#,
        r#"["push",["undefined",1]]"#,
        r#"["push",["bytes","!!"]]"#,
        r#"["push",["bytes","AQ","Int16Array"]]"#,
        r#"["push",["bytes","AAA","Nope"]]"#,
        r#"["push",["bigint","1e3"]]"#,
        r#"["push",["date","x"]]"#,
        r#"["push",["error",1,2]]"#,
        r#"["push",["pipeline",99,[],[]]]"#,
        r#"["push",["pipeline",0,"x",[]]]"#,
        r#"["push",["pipeline",0,[true],[]]]"#,
        r#"["push",["pipeline",0.5,[],[]]]"#,
        r#"["push",["pipeline",0,[],{}]]"#,
        r#"["push",["readable",1]]"#,
        r#"["push",["export",1]]"#,
        r#"["push",["response",null,{"status":"x"}]]"#,
        r#"["push",["request","http://x",{"body":1}]]"#,
        r#"["push",["blob","text/plain","x"]]"#,
        r#"["pull",1]"#,
        r#"["pull","1"]"#,
        r#"["release",1,1]"#,
        r#"["release",0,2]"#,
        r#"["release",0,-1]"#,
        r#"["stream",["pipeline",7,["write"],[1]]]"#,
        r#"["push","\ud8"]"#,
        r#"["push",01]"#,
        r#"["push",1.]"#,
        r#"["push",nul]"#,
        &deep_text,
    ];
    for case in cases {
        let (server, mut peer) = start().await;
        peer.send(case).await;
        let message = peer.next().await;
        assert!(
            message.starts_with(r#"["abort",["error","#),
            "{case:.60}: {message}"
        );
        assert!(
            message.contains(codes::PROTOCOL_ERROR),
            "{case:.60}: {message}"
        );
        assert!(peer.next().await.starts_with("close 3000 "), "{case:.60}");
        drop(peer);
        assert!(
            matches!(server.ended().await, CloseReason::Aborted(_)),
            "{case:.60}"
        );
    }
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_the_session() {
    let (server, mut peer) = raw(main(), {
        let mut limits = Limits::default();
        limits.receive_bytes = 1000;
        limits
    })
    .await;
    peer.send(&format!(r#"["push","{}"]"#, "x".repeat(2000)))
        .await;
    let message = peer.next().await;
    assert!(message.contains(codes::MESSAGE_TOO_LARGE), "{message}");
    drop(peer);
    assert!(
        matches!(server.ended().await, CloseReason::Aborted(error) if error.code() == Some(codes::MESSAGE_TOO_LARGE))
    );
}

#[tokio::test]
async fn a_binary_frame_ends_the_session() {
    use futures_util::SinkExt as _;
    let (_server, mut peer) = start().await;
    peer.0
        .send(tokio_tungstenite::tungstenite::Message::binary(vec![1, 2]))
        .await
        .unwrap();
    assert!(peer.next().await.starts_with(r#"["abort","#));
}

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
