//! Peers that read slowly, or not at all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use capnweb::{Budget, CloseReason, Limits, ReadableStream, Session, Target, Value, codes, ws};
use futures_util::{SinkExt as _, StreamExt as _};
use support::{eventually, methods, pair_with, raw, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

const MIB: usize = 1 << 20;

/// `read` is a stream without end that counts what it could write, `ping`
/// answers, `large` gives a MiB, `drain` reads a stream, `hold` never does.
fn main(written: Arc<AtomicUsize>) -> Option<Arc<dyn Target>> {
    methods(move |path, mut args| {
        let written = written.clone();
        async move {
            Ok(match path.as_str() {
                "read" => {
                    let (writer, stream) = ReadableStream::channel(256 * 1024);
                    tokio::spawn(async move {
                        let chunk = bytes::Bytes::from(vec![0_u8; 64 * 1024]);
                        while writer.write(chunk.clone()).await.is_ok() {
                            written.fetch_add(chunk.len(), Ordering::Relaxed);
                        }
                    });
                    stream.into()
                }
                "large" => vec![0_u8; MIB].into(),
                "some" => vec![0_u8; 64 * 1024].into(),
                "hold" => {
                    let _held = args.remove(0);
                    std::future::pending().await
                }
                _ => Value::from("pong"),
            })
        }
    })
}

/// Waits until a number has not changed for a while.
async fn settled(number: &AtomicUsize) -> usize {
    let mut last = usize::MAX;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = number.load(Ordering::Relaxed);
        if now == last && now > 0 {
            return now;
        }
        last = now;
    }
}

#[tokio::test]
async fn a_reader_that_never_acknowledges_holds_its_own_stream_back_alone() {
    let written = Arc::new(AtomicUsize::new(0));
    let (server, mut peer) = raw(main(written.clone()), Limits::default()).await;
    peer.send(r#"["push",["pipeline",0,["read"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    // It reads every frame and answers none.
    let mut received = 0;
    while received < 200 * 1024 {
        received += peer.next().await.len();
    }
    assert!(settled(&written).await < 2 * MIB);
    peer.send(r#"["push",["pipeline",0,["ping"],[]]]"#).await;
    peer.send(r#"["pull",2]"#).await;
    while peer.next().await != r#"["resolve",2,"pong"]"# {}
    let stats = server.connection.stats();
    assert!(stats.queue_bytes < MIB, "{stats:?}");
}

#[tokio::test]
async fn a_peer_that_acknowledges_without_reading_is_held_back_by_the_queue() {
    let written = Arc::new(AtomicUsize::new(0));
    let (server, mut peer) = raw(main(written.clone()), Limits::default()).await;
    peer.send(r#"["push",["pipeline",0,["read"],[]]]"#).await;
    peer.send(r#"["pull",1]"#).await;
    // Acknowledges writes that it has not seen, as long as there are any.
    for id in 2..40_000 {
        peer.send(&format!("[\"resolve\",{id},[\"undefined\"]]"))
            .await;
    }
    let most = settled(&written).await;
    assert!(
        most < 8 * MIB,
        "{most} bytes were taken for a peer that does not read"
    );
    let stats = server.connection.stats();
    assert!(stats.queue_bytes < 2 * MIB, "{stats:?}");
}

#[tokio::test]
async fn a_peer_that_stops_reading_holds_results_back_and_is_cut_off_in_the_end() {
    let mut limits = Limits::default();
    limits.queue_max_bytes = 4 * MIB;
    let (server, mut peer) = raw(main(Arc::default()), limits).await;
    for id in 1..=64 {
        peer.send(r#"["push",["pipeline",0,["large"],[]]]"#).await;
        peer.send(&format!("[\"pull\",{id}]")).await;
    }
    eventually("all results are there", || {
        server.connection.stats().pending_calls == 0
    })
    .await;
    let stats = server.connection.stats();
    assert!(stats.queue_bytes < 4 * MIB, "{stats:?}");
    assert!(stats.result_bytes < 80 * MIB, "{stats:?}");
    // What cannot wait: an answer to each write to a sink of which nobody knows the method.
    peer.send(r#"["pipe"]"#).await;
    let name = "x".repeat(60_000);
    for _ in 0..80 {
        let message = format!("[\"stream\",[\"pipeline\",65,[\"{name}\"],[]]]");
        if peer.0.send(Message::text(message)).await.is_err() {
            break;
        }
    }
    let ended = within(server.connection.closed()).await;
    let cut = matches!(&ended, CloseReason::Aborted(error) if error.code() == Some(codes::PEER_NOT_READING));
    assert!(cut, "{ended:?}");
}

#[tokio::test]
async fn a_peer_that_reads_a_byte_at_a_time_gets_everything_and_costs_little() {
    let (near, far) = tokio::io::duplex(4096);
    // Between the two: a byte at a time, one way.
    let (slow_near, slow_far) = tokio::io::duplex(1);
    let (mut far_read, mut far_write) = tokio::io::split(far);
    let (mut read, mut write) = tokio::io::split(slow_near);
    tokio::spawn(async move { tokio::io::copy(&mut far_read, &mut write).await });
    tokio::spawn(async move {
        let mut byte = [0];
        while read.read_exact(&mut byte).await.is_ok() && far_write.write_all(&byte).await.is_ok() {
        }
    });
    let limits = Limits::default();
    let near =
        WebSocketStream::from_raw_socket(near, Role::Server, Some(ws::config(&limits))).await;
    let mut socket = WebSocketStream::from_raw_socket(slow_far, Role::Client, None).await;
    let written = Arc::new(AtomicUsize::new(0));
    let transport = ws::tungstenite(near, &limits);
    let (connection, driver) = Session::start(transport, main(written.clone()), limits);
    tokio::spawn(driver);
    for text in [r#"["push",["pipeline",0,["some"],[]]]"#, r#"["pull",1]"#] {
        socket.send(Message::text(text)).await.unwrap();
    }
    let answer = async {
        loop {
            if let Some(Ok(Message::Text(text))) = socket.next().await {
                return text.len();
            }
        }
    };
    let length = tokio::time::timeout(Duration::from_secs(120), answer)
        .await
        .unwrap();
    assert!(length > 64 * 1024);
    assert!(connection.stats().queue_bytes < 2 * MIB);
}

#[tokio::test]
async fn a_writer_that_does_not_wait_for_acknowledgements_overflows_its_own_stream() {
    let mut limits = Limits::default();
    limits.stream_bytes = MIB;
    let (server, mut peer) = raw(main(Arc::default()), limits).await;
    peer.send(r#"["pipe"]"#).await;
    peer.send(r#"["push",["pipeline",0,["hold"],[["readable",1]]]]"#)
        .await;
    let chunk = "A".repeat(100_000);
    for _ in 0..20 {
        peer.send(&format!(
            "[\"stream\",[\"pipeline\",1,[\"write\"],[[\"bytes\",\"{chunk}\"]]]]"
        ))
        .await;
    }
    let answer = peer.next().await;
    assert!(
        answer.contains(codes::STREAM_OVERFLOW) || answer.starts_with("[\"reject\""),
        "{answer}"
    );
    eventually("what was unread is gone", || {
        server.connection.stats().stream_bytes == 0
    })
    .await;
    peer.send(r#"["push",["pipeline",0,["ping"],[]]]"#).await;
    peer.send("[\"pull\",23]").await;
    while peer.next().await != r#"["resolve",23,"pong"]"# {}
}

#[tokio::test]
async fn sessions_of_one_caller_share_a_budget() {
    let budget = Budget::new(10, MIB);
    let mut ends = Vec::new();
    for _ in 0..2 {
        let (server, client) = pair_with(main(Arc::default()), None, Limits::default()).await;
        server.connection.share(&budget);
        ends.push((server, client));
    }
    let hold = |index: usize| ends[index].1.main().call("hold", vec![1.into()]).ask();
    let first: Vec<_> = (0..6).map(|_| hold(0)).collect();
    eventually("six wait", || budget.calls() == 6).await;
    let second: Vec<_> = (0..4).map(|_| hold(1)).collect();
    eventually("ten wait", || budget.calls() == 10).await;
    let error = within(hold(1)).await.unwrap_err();
    assert_eq!(error.code(), Some(codes::TOO_MANY_CALLS));
    drop(first);
    eventually("four wait", || budget.calls() == 4).await;
    drop(second);
    eventually("none waits", || budget.calls() == 0).await;
    // Bytes count together, too, whatever they are.
    let held = ends[0]
        .1
        .main()
        .call("hold", vec![vec![0_u8; 600_000].into()])
        .ask();
    eventually("the bytes count", || budget.bytes() > 600_000).await;
    let error = within(
        ends[1]
            .1
            .main()
            .call("hold", vec![vec![0_u8; 600_000].into()]),
    )
    .await;
    assert_eq!(error.unwrap_err().code(), Some(codes::TOO_MANY_CALLS));
    let error = within(ends[1].1.main().call("large", vec![]))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(codes::RESULTS_NOT_RELEASED));
    drop(held);
    eventually("nothing counts", || budget.bytes() == 0).await;
    assert!(within(ends[1].1.main().call("ping", vec![])).await.is_ok());
}
