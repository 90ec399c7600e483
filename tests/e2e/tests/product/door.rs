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
async fn two_servers_on_two_directories_do_not_see_each_other() {
    let mut first = Hutch::start();
    let second = Hutch::start();
    let (api, other) = (first.api().await, second.api().await);
    let options = || json!({"sleepAfter": "10m"});
    let mine = api.create("main", options()).await;
    let theirs = other.create("main", options()).await;
    mine.json("startProcess", &[json!("sleep 301")]).await;
    theirs.json("startProcess", &[json!("sleep 302")]).await;
    let life = "pgrep -ax sleep | cut -d' ' -f2-";
    let boot = theirs.json("describe", &[]).await["bootId"].clone();
    // Server and spawner of the one die at once, and what they left is judged
    // by the next ones; the other's is not theirs to touch.
    let spawner = hutch_e2e::spawner_of(&first);
    drop(api);
    first.end(rustix::process::Signal::KILL);
    let spawner = rustix::process::Pid::from_raw(i32::try_from(spawner).unwrap()).unwrap();
    rustix::process::kill_process(spawner, rustix::process::Signal::KILL).unwrap();
    first.serve();
    let api = first.api().await;
    assert_eq!(api.sandbox("main").sh(life).await.1, "sleep 301\n");
    assert_eq!(theirs.sh(life).await.1, "sleep 302\n");
    assert_eq!(theirs.json("describe", &[]).await["bootId"], boot);
    // Nor does a key of one open the other.
    let stranger = hutch_e2e::Api::stranger(second.url()).await;
    let key = json!({"type": "bearer", "token": first.token()});
    let refused = stranger.main();
    let refused = refused
        .call("authenticate", vec![Value::from_json(key)])
        .await;
    assert_eq!(refused.unwrap_err().code(), Some("UNAUTHENTICATED"));
    api.sandbox("main").json("destroy", &[]).await;
    assert_eq!(theirs.sh(life).await.1, "sleep 302\n");
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
