use std::io::{Read, Write};
use std::net::TcpStream;

use capnweb::Value;
use hutch_e2e::Hutch;
use serde_json::json;

/// One request over a bare socket; the status of the answer.
fn status(hutch: &Hutch, head: &str) -> String {
    let address = hutch.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{head}\r\n\r\n").unwrap();
    let mut answer = [0; 64];
    let read = stream.read(&mut answer).unwrap();
    let line = String::from_utf8_lossy(&answer[..read]).into_owned();
    line.split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned()
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_pages_and_rebound_names_stay_out() {
    let hutch = Hutch::start();
    let host = hutch.url().trim_start_matches("http://").to_owned();
    let get =
        |extra: &str, host: &str| format!("GET /api HTTP/1.1\r\nHost: {host}\r\n{UPGRADE}{extra}");
    assert_eq!(status(&hutch, &get("", &host)), "101");
    assert_eq!(
        status(&hutch, &get(&format!("\r\nOrigin: http://{host}"), &host)),
        "101"
    );
    assert_eq!(
        status(&hutch, &get("\r\nOrigin: http://evil.test", &host)),
        "403"
    );
    assert_eq!(status(&hutch, &get("", "evil.test")), "403");
    assert_eq!(
        status(&hutch, &format!("GET /api HTTP/1.1\r\nHost: {host}")),
        "426"
    );
    assert_eq!(
        status(&hutch, &format!("GET / HTTP/1.1\r\nHost: {host}")),
        "404"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_works_without_a_token() {
    let hutch = Hutch::start();
    for credentials in [
        json!({}),
        json!(null),
        json!({"type": "bearer"}),
        json!({"type": "bearer", "token": "nope"}),
        json!({"type": "admin-secret", "secret": hutch.token()}),
    ] {
        let api = hutch_e2e::Api::stranger(hutch.url()).await;
        let main = api.main();
        let error = main
            .call("authenticate", vec![Value::from_json(credentials)])
            .await
            .unwrap_err();
        assert_eq!(error.code(), Some("UNAUTHENTICATED"));
        let error = main.call("projects.list", vec![]).await.unwrap_err();
        assert_eq!(error.code(), Some("UNAUTHENTICATED"));
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(hutch.data_dir().join("admin.key"))
            .unwrap()
            .permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_the_same_directory_is_refused() {
    let hutch = Hutch::start();
    let second = hutch.cli(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        hutch.data_dir().to_str().unwrap(),
    ]);
    assert!(!second.status.success());
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use by another server"));
    let api = hutch.api().await;
    assert_eq!(
        hutch_e2e::Handle(api.session.clone())
            .json("whoami", &[])
            .await["type"],
        "admin"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_frame_ends_its_session_alone() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    for frame in [
        "",
        "[]",
        "nope",
        "[\"push\"]",
        "[\"release\",0,5]",
        "[\"resolve\",-7,1]",
        "{\"a\":1}",
        "[\"abort\",1]",
    ] {
        hutch_e2e::Api::raw(hutch.url(), frame).await;
    }
    hutch_e2e::Api::raw(hutch.url(), &"[".repeat(900_000)).await;
    hutch_e2e::Api::raw(
        hutch.url(),
        &format!("[\"push\",\"{}\"]", "x".repeat(8 << 20)),
    )
    .await;
    assert_eq!(
        hutch_e2e::Handle(api.session.clone())
            .json("whoami", &[])
            .await["type"],
        "admin"
    );
}
