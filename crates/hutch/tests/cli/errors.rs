//! Refusals, as programs read them.

use super::{json, refused};
use hutch_e2e::Hutch;
use serde_json::Value;

#[test]
fn each_refusal_has_its_code_and_status() {
    let hutch = Hutch::start();
    let large = format!("A={}", "x".repeat(40_000));
    for (args, exit, code) in [
        (&["sandbox", "create", "Bad"] as &[&str], 1, "INVALID_NAME"),
        (&["sandbox", "create", "-x-", "--"], 2, "USAGE"),
        (
            &["sandbox", "create", "a", "--type", "huge"],
            1,
            "INVALID_INSTANCE_TYPE",
        ),
        (
            &["sandbox", "create", "a", "--sleep-after", "0s"],
            1,
            "INVALID_SLEEP_AFTER",
        ),
        (
            &["sandbox", "create", "a", "--sleep-after=-1"],
            1,
            "INVALID_SLEEP_AFTER",
        ),
        (
            &["sandbox", "create", "a", "--sleep-after", "NaN"],
            1,
            "INVALID_SLEEP_AFTER",
        ),
        (
            &["sandbox", "create", "a", "--env", &large],
            1,
            "INVALID_ENV",
        ),
        (&["sandbox", "get", "none"], 1, "SANDBOX_NOT_FOUND"),
        (&["sandbox", "sleep", "none"], 1, "SANDBOX_NOT_FOUND"),
        (&["sandbox", "destroy", "none"], 1, "SANDBOX_NOT_FOUND"),
        (&["sandbox", "events", "none"], 1, "SANDBOX_NOT_FOUND"),
        (&["sandbox", "get", "/secrets/x"], 1, "INVALID_PATH"),
        (&["exec", "none", "--", "true"], 125, "SANDBOX_NOT_FOUND"),
        (
            &["exec", "none", "--timeout", "soon", "--", "true"],
            125,
            "USAGE",
        ),
        (
            &["project", "create", "default"],
            1,
            "PROJECT_ALREADY_EXISTS",
        ),
        (&["sandbox", "list", "-p", "none"], 1, "PROJECT_NOT_FOUND"),
        (
            &["sandbox", "list", "--token", "wrong"],
            1,
            "UNAUTHENTICATED",
        ),
        (
            &["project", "list", "--url", "http://127.0.0.1:1"],
            1,
            "CONNECTION_FAILED",
        ),
        (
            &["project", "list", "--url", "https://127.0.0.1"],
            1,
            "INVALID_URL",
        ),
        (
            &["itx", "run", "-e", "throw new RangeError('x')"],
            1,
            "SCRIPT_ERROR",
        ),
        (&["frobnicate"], 2, "USAGE"),
    ] {
        let args = [&["--json"], args].concat();
        let output = hutch.cli(&args);
        let found = refused(&output);
        assert_eq!(found, (exit, code.to_owned()), "{args:.80?}");
    }
    let sandboxes = json(&hutch.cli(&["sandbox", "list", "--all", "--json"]));
    assert_eq!(sandboxes, Value::Array(vec![]), "a refusal made something");
}

#[test]
fn the_status_and_the_context_are_the_servers() {
    let hutch = Hutch::start();
    let output = hutch.cli(&["--json", "sandbox", "get", "none"]);
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["httpStatus"], 404);
    assert_eq!(error["error"]["context"]["path"], "/sandboxes/none");
}

#[test]
fn people_read_one_line_with_the_way_out() {
    let hutch = Hutch::start();
    let output = hutch.cli(&["sandbox", "get", "none"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.starts_with("error: sandbox /sandboxes/none does not exist"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}
