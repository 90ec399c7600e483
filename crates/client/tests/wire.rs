//! What the client sends, and what it makes of answers; the peer is a bare
//! WebSocket that says what each test wants.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use capnweb::{Limits, ws};
use futures_util::{SinkExt, StreamExt};
use hutch_client::{Client, ClientError, CreateOptions, ExecOptions, SleepAfter};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

type Peer = WebSocketStream<DuplexStream>;

async fn join() -> (Client, Peer) {
    let limits = Limits::default();
    let (near, far) = tokio::io::duplex(1 << 16);
    let accepting = tokio::spawn(tokio_tungstenite::accept_async(far));
    let transport = ws::client(near, "ws://peer/api", &limits).await.unwrap();
    let token = SecretString::from("secret".to_owned());
    let client = Client::over(transport, limits, &token);
    (client, accepting.await.unwrap().unwrap())
}

/// The calls up to the first `pull`, which is when the client waits.
async fn until_pull(peer: &mut Peer) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let Message::Text(text) = peer.next().await.unwrap().unwrap() else {
            continue;
        };
        let message: Value = serde_json::from_str(&text).unwrap();
        if message[0] == "pull" {
            return messages;
        }
        if message[0] == "push" {
            messages.push(message);
        }
    }
}

async fn say(peer: &mut Peer, message: Value) {
    peer.send(Message::text(message.to_string())).await.unwrap();
}

#[tokio::test]
async fn a_first_command_is_one_round_trip() {
    let (client, mut peer) = join().await;
    let sandbox = client.project("demo").sandbox("/sandboxes/main");
    let exec = tokio::spawn(async move { sandbox.exec("ls", &ExecOptions::default()).await });
    let sent = until_pull(&mut peer).await;
    assert_eq!(
        sent,
        [
            json!(["push", ["pipeline", 0, ["authenticate"], [{"type": "bearer", "token": "secret"}]]]),
            json!(["push", ["pipeline", 1, ["projects", "get"], ["demo"]]]),
            json!([
                "push",
                ["pipeline", 2, ["sandboxes", "get"], ["/sandboxes/main"]]
            ]),
            json!(["push", ["pipeline", 3, ["exec"], ["ls"]]]),
        ]
    );
    let answer = json!({"exitCode": 3, "stdout": "a", "stderr": "", "success": false});
    say(&mut peer, json!(["resolve", 4, answer])).await;
    let result = exec.await.unwrap().unwrap();
    assert_eq!((result.exit_code, result.stdout.as_str()), (3, "a"));
}

#[tokio::test]
async fn only_options_that_were_given_are_sent() {
    let (client, mut peer) = join().await;
    let sandbox = client.project("demo").sandbox("/sandboxes/main");
    let options = CreateOptions {
        sleep_after: Some(SleepAfter::Seconds(90.0)),
        ..CreateOptions::default()
    };
    let _create = tokio::spawn(async move { sandbox.create(&options).await });
    let sent = until_pull(&mut peer).await;
    assert_eq!(
        sent[3],
        json!(["push", ["pipeline", 3, ["create"], [{"sleepAfter": 90}]]])
    );
}

#[tokio::test]
async fn a_refusal_keeps_code_details_and_status() {
    let (client, mut peer) = join().await;
    let refused = tokio::spawn(async move { client.whoami().await });
    until_pull(&mut peer).await;
    let props = json!({"code": "UNAUTHENTICATED", "details": {"a": 1}, "httpStatus": 401});
    let error = json!(["error", "Error", "no", null, props]);
    say(&mut peer, json!(["reject", 2, error])).await;
    let error = refused.await.unwrap().unwrap_err();
    assert_eq!(error.code(), "UNAUTHENTICATED");
    assert_eq!(error.to_string(), "no");
    assert_eq!(error.details(), json!({"a": 1}));
    assert_eq!(error.http_status(), Some(401));
}

#[tokio::test]
async fn a_lost_connection_is_an_interruption_of_unknown_outcome() {
    let (client, mut peer) = join().await;
    let lost = tokio::spawn(async move { client.whoami().await });
    until_pull(&mut peer).await;
    peer.close(None).await.unwrap();
    let error = lost.await.unwrap().unwrap_err();
    assert_eq!(error.code(), "OPERATION_INTERRUPTED");
    assert!(
        matches!(error, ClientError::Interrupted { admitted: None, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_call_after_the_end_was_not_admitted() {
    let (client, mut peer) = join().await;
    peer.close(None).await.unwrap();
    while let Some(Ok(_)) = peer.next().await {}
    // Knows of the end when it has waited for it.
    let _ = client.whoami().await;
    let error = client.whoami().await.unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::Interrupted {
                admitted: Some(false),
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_answer_of_another_shape_is_told() {
    let (client, mut peer) = join().await;
    let listed = tokio::spawn(async move { client.list_projects().await });
    until_pull(&mut peer).await;
    say(&mut peer, json!(["resolve", 2, "nonsense"])).await;
    let error = listed.await.unwrap().unwrap_err();
    assert_eq!(error.code(), "INVALID_RESPONSE");
    assert!(error.to_string().contains("projects.list"), "{error}");
}

#[tokio::test]
async fn dropping_a_call_gives_it_up() {
    let (client, mut peer) = join().await;
    let sandbox = client.project("demo").sandbox("/sandboxes/main");
    let call = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.exec("sleep 100", &ExecOptions::default()).await }
    });
    until_pull(&mut peer).await;
    call.abort();
    // What led to the call may be released before it.
    loop {
        let Message::Text(text) = peer.next().await.unwrap().unwrap() else {
            panic!("not text");
        };
        let message: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(message[0], "release");
        if message == json!(["release", 4, 1]) {
            break;
        }
    }
}

#[tokio::test]
async fn nobody_listening_is_a_failed_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let token = SecretString::from(String::new());
    let error = Client::connect(&format!("http://{address}"), token)
        .await
        .unwrap_err();
    assert_eq!(error.code(), "CONNECTION_FAILED");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
