//! `hutch serve` and `hutch doctor`.

use super::{good, json};
use hutch_e2e::Hutch;
use serde_json::json;

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let hutch = Hutch::start();
    let dir = hutch.data_dir();
    let output = hutch.cli(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        dir.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).starts_with("error: "),
        "{output:?}"
    );
}

#[test]
fn a_taken_address_is_named() {
    let hutch = Hutch::start();
    let address = hutch.url().replace("http://", "");
    let other = hutch.data_dir().with_file_name("other");
    let output = hutch.cli(&[
        "serve",
        "--listen",
        &address,
        "--data-dir",
        other.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains(&address),
        "{output:?}"
    );
}

#[test]
fn the_doctor_sees_isolation_directory_and_server() {
    let hutch = Hutch::start();
    let report = json(&hutch.cli(&["doctor", "--json"]));
    assert_eq!(report["ok"], true);
    assert!(!report["isolation"]["items"].as_array().unwrap().is_empty());
    assert_eq!(report["dataDir"][0]["support"], "ok");
    assert_eq!(
        report["server"],
        json!([{"name": "reachable", "support": "ok", "detail": format!("{}, 1 project", hutch.url())}])
    );
    let text = good(&hutch.cli(&["doctor"]));
    assert!(text.ends_with("Sandboxes can run here.\n"), "{text}");
}
