//! Sessions that are one HTTP request.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use capnweb::batch::{BatchClient, BatchServer};
use capnweb::{CloseReason, ErrorValue, Limits, ReadableStream, Stub, Target, Value, codes};
use support::{eventually, methods, within};

fn main() -> Option<Arc<dyn Target>> {
    methods(|path, mut args| async move {
        Ok(match path.as_str() {
            "echo" => args.remove(0),
            "add" => (args[0].as_f64().unwrap() + args[1].as_f64().unwrap()).into(),
            "big" => vec![0_u8; 1 << 20].into(),
            "wait" => std::future::pending().await,
            "call" => return args[0].as_stub().unwrap().call("", vec![]).await,
            "collect" => {
                let Value::Readable(mut stream) = args.remove(0) else {
                    panic!("no stream")
                };
                let mut total = 0;
                while let Some(chunk) = stream.next().await {
                    total += chunk?.as_bytes().unwrap().len();
                }
                (total as f64).into()
            }
            "read" => ReadableStream::channel(10).1.into(),
            _ => return Err(ErrorValue::coded("NOPE", path)),
        })
    })
}

async fn serve(body: String, limits: Limits) -> String {
    let (_connection, mut batch) = BatchServer::start(main(), limits);
    // In parts that end anywhere.
    for part in body.as_bytes().chunks(7) {
        batch.feed(part);
        while batch.step() {}
    }
    within(batch.finish()).await
}

async fn post(body: String) -> Result<String, Infallible> {
    Ok(serve(body, Limits::default()).await)
}

#[tokio::test]
async fn a_batch_is_answered_when_all_that_was_asked_for_is_there() {
    let (connection, batch) = BatchClient::start(Limits::default());
    let api = connection.main();
    let first = api.call("add", vec![1.into(), 2.into()]).stub();
    let second = api
        .call("add", vec![first.clone().into_promise(), 10.into()])
        .ask();
    let failing = api.call("nope", vec![]);
    let unasked = api.call("wait", vec![]);
    let (failed, reason) =
        within(async { tokio::join!(failing.into_future(), batch.run(post)) }).await;
    assert_eq!(failed.unwrap_err().code(), Some("NOPE"));
    assert!(matches!(reason, CloseReason::BatchEnded), "{reason:?}");
    assert_eq!(within(second).await.unwrap().as_f64(), Some(13.0));
    let error = within(unasked).await.unwrap_err();
    assert_eq!(error.message, "Batch RPC request ended.");
    assert!(within(api.call("echo", vec![])).await.is_err());
}

#[tokio::test]
async fn an_empty_body_has_an_empty_answer() {
    assert_eq!(serve(String::new(), Limits::default()).await, "");
    assert_eq!(serve("\n".to_owned(), Limits::default()).await, "");
}

#[tokio::test]
async fn what_would_need_the_client_again_fails() {
    let lines = [
        r#"["push",["pipeline",0,["call"],[["export",-1]]]]"#,
        r#"["pull",1]"#,
        r#"["push",["pipeline",0,["echo"],[["promise",-2]]]]"#,
        r#"["pull",2]"#,
        r#"["pipe"]"#,
        r#"["push",["pipeline",0,["collect"],[["readable",3]]]]"#,
        r#"["pull",4]"#,
        r#"["stream",["pipeline",3,["write"],[["bytes","AAAA"]]]]"#,
    ];
    let answer = serve(lines.join("\n"), Limits::default()).await;
    for id in [1, 2, 4] {
        let rejected =
            format!("[\"reject\",{id},[\"error\",\"Error\",\"Batch RPC request ended.\"");
        assert!(answer.contains(&rejected), "{id}: {answer}");
    }
}

#[tokio::test]
async fn a_stream_that_is_whole_in_the_batch_is_read() {
    let lines = [
        r#"["pipe"]"#,
        r#"["push",["pipeline",0,["collect"],[["readable",1]]]]"#,
        r#"["pull",2]"#,
        r#"["stream",["pipeline",1,["write"],[["bytes","AAAA"]]]]"#,
        r#"["stream",["pipeline",1,["close"],[]]]"#,
    ];
    let answer = serve(lines.join("\n"), Limits::default()).await;
    assert!(answer.contains(r#"["resolve",2,3]"#), "{answer}");
}

#[tokio::test]
async fn a_batch_is_bounded_in_both_directions() {
    let mut limits = Limits::default();
    limits.batch_bytes = 1000;
    let long = format!(
        r#"["push",["pipeline",0,["echo"],["{}"]]]"#,
        "x".repeat(2000)
    );
    assert!(serve(long, limits).await.contains(codes::MESSAGE_TOO_LARGE));
    let asks = "[\"push\",[\"pipeline\",0,[\"big\"],[]]]\n[\"pull\",1]".to_owned();
    let answer = serve(asks, limits).await;
    assert!(
        answer.starts_with("[\"abort\"") && answer.contains(codes::MESSAGE_TOO_LARGE),
        "{answer:.90}"
    );
    let mut short = Limits::default();
    short.receive_bytes = 100;
    assert!(
        serve("x".repeat(200), short)
            .await
            .contains(codes::MESSAGE_TOO_LARGE)
    );
    assert!(
        serve("nonsense\n[\"pull\",1]".into(), Limits::default())
            .await
            .starts_with("[\"abort\"")
    );

    let (connection, batch) = BatchClient::start(limits);
    let call = connection
        .main()
        .call("echo", vec!["x".repeat(2000).into()]);
    let (result, _) = within(async { tokio::join!(call.into_future(), batch.run(post)) }).await;
    assert_eq!(result.unwrap_err().code(), Some(codes::MESSAGE_TOO_LARGE));
    // A server that answers without end.
    let (connection, batch) = BatchClient::start(limits);
    let call = connection.main().call("echo", vec![1.into()]);
    let endless = |_| async { Ok::<_, Infallible>("[\"pipe\"]\n".repeat(1000)) };
    let (result, _) = within(async { tokio::join!(call.into_future(), batch.run(endless)) }).await;
    assert_eq!(result.unwrap_err().code(), Some(codes::MESSAGE_TOO_LARGE));
}

#[tokio::test]
async fn a_request_that_fails_says_that_the_calls_may_have_run() {
    let (connection, batch) = BatchClient::start(Limits::default());
    let call = connection.main().call("echo", vec![1.into()]);
    let broken = |_| async { Err::<String, _>("no route") };
    let (result, _) = within(async { tokio::join!(call.into_future(), batch.run(broken)) }).await;
    let error = result.unwrap_err();
    assert_eq!(error.code(), Some(codes::DISCONNECTED));
    assert_eq!(error.message, "RPC request failed: no route");
    assert!(error.is_end_of_session());
}

#[tokio::test]
async fn dropping_a_batch_ends_its_calls() {
    struct Ended(Arc<AtomicBool>);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    let main = methods(move |_, _| {
        let ended = Ended(flag.clone());
        async move {
            let _ended = ended;
            std::future::pending().await
        }
    });
    let (_connection, mut batch) = BatchServer::start(main, Limits::default());
    batch.feed(b"[\"push\",[\"pipeline\",0,[\"wait\"],[]]]\n[\"pull\",1]");
    let finish = tokio::spawn(batch.finish());
    tokio::task::yield_now().await;
    assert!(!ended.load(Ordering::Acquire));
    finish.abort();
    eventually("the call ended", || ended.load(Ordering::Acquire)).await;
    let _ = Stub::rejected(ErrorValue::new("Error", "unused"));
}
