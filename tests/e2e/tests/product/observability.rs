//! What those see who watch a server.

use std::io::{Read, Write};
use std::net::TcpStream;

use hutch_e2e::{Handle, Hutch, string};
use serde_json::{Value as Json, json};

/// One GET; the status and the body.
fn get(hutch: &Hutch, path: &str, header: &str) -> (u16, String) {
    let host = hutch.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{header}\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    (status, body)
}

fn number(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in:\n{text}"))
        .trim()
        .parse()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_what_happened_and_need_a_key() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.exec("true").await;
    sandbox.json("sleep", &[]).await;
    let session = Handle(api.session.clone());
    let narrow = session
        .json("keys.create", &[json!({"project": "default"})])
        .await;
    let wide = session.json("keys.create", &[]).await;

    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    assert_eq!(get(&hutch, "/metrics", "").0, 401);
    assert_eq!(get(&hutch, "/metrics", &bearer("nope")).0, 401);
    assert_eq!(
        get(&hutch, "/metrics", &bearer(&string(&narrow["token"]))).0,
        401
    );
    assert_eq!(
        get(&hutch, "/metrics", &bearer(&string(&wide["token"]))).0,
        200
    );
    let (status, text) = get(&hutch, "/metrics", &bearer(&hutch.token()));
    assert_eq!(status, 200);
    assert_eq!(number(&text, "hutch_sandboxes{status=\"stopped\"} "), 1.0);
    assert_eq!(number(&text, "hutch_boot_seconds_count "), 1.0);
    assert_eq!(number(&text, "hutch_sleeps_total "), 1.0);
    assert_eq!(number(&text, "hutch_connections "), 1.0);
    assert!(number(&text, "hutch_store_events_total ") >= 4.0);
    assert!(number(&text, "hutch_resident_bytes ") > 1e6);
    assert!(!text.contains("main") && !text.contains(&hutch.token()));
}

#[test]
fn health_tells_anybody_and_nothing_else() {
    let hutch = Hutch::start();
    let (status, body) = get(&hutch, "/health", "");
    assert_eq!(status, 200);
    let body: Json = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&body["ok"], &body["sandboxes"]),
        (&json!(true), &json!("available"))
    );
    assert_eq!(
        get(&hutch, "/health", "Origin: http://evil.test\r\n").0,
        403
    );
}
