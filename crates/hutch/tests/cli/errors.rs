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
        (&["sandbox", "restart", "none"], 1, "SANDBOX_NOT_FOUND"),
        (&["sandbox", "logs", "none"], 1, "SANDBOX_NOT_FOUND"),
        (&["key", "revoke", "nonsense"], 1, "VALIDATION_FAILED"),
        (&["stream", "read", "/x", "--limit", "0"], 2, "USAGE"),
        (
            &["stream", "append", "/sandboxes/a", "--type", "a/b"],
            1,
            "FORBIDDEN",
        ),
        (
            &["stream", "append", "/x", "--type", "sandbox/created"],
            1,
            "FORBIDDEN_EVENT_TYPE",
        ),
        (
            &["stream", "append", "/x", "--type", "a/b", "--payload", "[]"],
            2,
            "USAGE",
        ),
        (&["man", "nonsense"], 2, "USAGE"),
        (&["completions", "csh"], 2, "USAGE"),
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
fn every_command_answers_in_json() {
    let hutch = super::with_sandbox();
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("tmp").display().to_string();
    for args in [
        &["project", "list"] as &[&str],
        &["project", "create", "demo"],
        &["sandbox", "list"],
        &["sandbox", "get", "main"],
        &["sandbox", "start", "main"],
        &["sandbox", "restart", "main"],
        &["sandbox", "set", "main", "--keep-alive", "off"],
        &["sandbox", "logs", "main"],
        &["cp", "main:/tmp", &there],
        &["cp", &there, "main:/workspace"],
        &["sandbox", "sleep", "main"],
        &["sandbox", "create", "other"],
        &["sandbox", "remove", "other"],
        &["stream", "list"],
        &["stream", "append", "/x", "--type", "a/b"],
        &["stream", "read", "/x"],
        &["key", "create"],
        &["key", "list"],
        &["itx", "run", "-e", "return {a: 1}"],
        &["doctor"],
        &["completions", "fish"],
        &["man", "exec"],
    ] {
        let output = hutch.cli(&[&["--json"], args].concat());
        assert!(output.status.success(), "{args:?}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let value: Result<Value, _> = serde_json::from_str(text.trim_end());
        assert!(value.is_ok(), "{args:?}: {text}");
        assert!(!text.contains('\u{1b}'), "{args:?} has colour");
    }
    // Each event is a document of its own.
    let events = hutch.cli(&["--json", "sandbox", "events", "main"]);
    let text = String::from_utf8(events.stdout).unwrap();
    assert!(text.lines().count() > 3);
    assert!(
        text.lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
}

#[test]
fn what_is_there_already_advises_the_option_of_this_command_line() {
    let hutch = super::with_sandbox();
    for args in [
        &["sandbox", "create", "main"],
        &["project", "create", "default"],
    ] {
        let output = hutch.cli(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains("--if-missing") && !text.contains("itx."),
            "{text}"
        );
    }
}

#[test]
fn a_program_that_cannot_be_started_answers_as_a_shell_does() {
    let hutch = super::with_sandbox();
    for (program, exit, code) in [
        ("no-such-program", 127, "COMMAND_NOT_FOUND"),
        ("/workspace/no/such", 127, "COMMAND_NOT_FOUND"),
        ("/etc/hostname", 126, "COMMAND_PERMISSION_DENIED"),
        ("/etc", 126, "COMMAND_PERMISSION_DENIED"),
    ] {
        let output = hutch.cli(&["--json", "exec", "main", "--", program]);
        assert_eq!(refused(&output), (exit, code.to_owned()), "{program}");
    }
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
