//! What those see who watch a server.

use std::io::{Read, Write};
use std::net::TcpStream;

use hutch_e2e::{Api, Handle, Hutch, string, wait_until};
use rustix::process::Signal;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_say_what_they_are_about_and_hold_no_secret() {
    const VALUE: &str = "value-that-is-nobodys-business";
    let mut hutch = Hutch::start();
    hutch.end(Signal::TERM);
    wait_until("the first log ends", || hutch.log().contains("stopped: "));
    let before = hutch.log().len();
    let debug = [("HUTCH_LOG", "debug"), ("HUTCH_LOG_FORMAT", "json")];
    hutch.try_serve(&[], &debug).unwrap();
    let api = hutch.api().await;
    let options = json!({"env": {"TOKEN": VALUE}});
    let sandbox = api.create("main", options).await;
    let call = [json!("echo $V $TOKEN"), json!({"env": {"V": VALUE}})];
    sandbox.json("exec", &call).await;
    let args = [json!("/workspace/f"), json!(VALUE)];
    sandbox.json("writeFile", &args).await;
    sandbox.json("setEnvVars", &[json!({"A": VALUE})]).await;
    let session = Handle(api.session.clone());
    let project = json!({"project": "default"});
    let key = string(&session.json("keys.create", &[project]).await["token"]);
    let known = Api::connect(hutch.url(), &key).await;
    known.sandbox("main").sh("true").await;
    let wrong = format!("{key}x");
    let stranger = Api::stranger(hutch.url()).await.main();
    let credentials = json!({"type": "bearer", "token": wrong});
    let refused = stranger
        .call("authenticate", vec![capnweb::Value::from_json(credentials)])
        .await;
    assert!(refused.is_err());
    let missing = sandbox.call("readFile", &[json!("/workspace/none")]).await;
    assert!(missing.is_err());
    let boot = string(&sandbox.json("describe", &[]).await["bootId"]);
    sandbox.json("sleep", &[]).await;
    let admin = hutch.token();
    hutch.end(Signal::TERM);
    wait_until("the log ends", || hutch.log().contains("\"stopped\""));
    let log = hutch.log().split_off(before);
    for secret in [VALUE, &admin, &key, &wrong] {
        assert!(!log.contains(secret), "{log}");
    }
    let lines: Vec<Json> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect();
    // One line with all that a call is about.
    let about = |line: &Json| {
        let spans = line["spans"].as_array().into_iter().flatten();
        let mut all = line.as_object().unwrap().clone();
        for span in spans.chain([&line["span"]]) {
            all.extend(
                span.as_object()
                    .into_iter()
                    .flatten()
                    .map(|(k, v)| (k.clone(), v.clone())),
            );
        }
        all
    };
    let whole = lines.iter().map(about).any(|line| {
        line.get("boot") == Some(&json!(boot))
            && line.get("sandbox") == Some(&json!("main"))
            && line.contains_key("project")
            && line.contains_key("trace")
    });
    assert!(whole, "{log}");
}
