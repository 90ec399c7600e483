//! What a peer breaks, and what it costs.

use crate::support::{eventually, raw};
use capnweb::{CloseReason, Limits, codes};

use crate::{main, start};

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
    assert_eq!(messages[2], r#"["release",-9,1]"#);
    assert_eq!(messages[3], r#"["resolve",3,["export",-1]]"#);
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
