//! `hutch project` and `hutch sandbox`.

use super::{good, json, refused, with_sandbox};
use hutch_e2e::Hutch;
use serde_json::{Value, json};

fn names(list: &Value) -> Vec<&str> {
    let sandboxes = list.as_array().unwrap().iter();
    sandboxes
        .map(|sandbox| sandbox["path"].as_str().unwrap())
        .collect()
}

#[test]
fn destroyed_sandboxes_are_listed_on_request_only() {
    let hutch = with_sandbox();
    good(&hutch.cli(&["sandbox", "create", "other"]));
    good(&hutch.cli(&["sandbox", "rm", "main"]));
    let list = json(&hutch.cli(&["sandbox", "list", "--json"]));
    assert_eq!(names(&list), ["/sandboxes/other"]);
    let list = json(&hutch.cli(&["sandbox", "ls", "--all", "--json"]));
    assert_eq!(names(&list), ["/sandboxes/main", "/sandboxes/other"]);
    let fields: Vec<_> = list[0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["createdAt", "instanceType", "path", "status"]);
}

#[test]
fn people_get_an_aligned_table() {
    let hutch = with_sandbox();
    let text = good(&hutch.cli(&["sandbox", "list"]));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "NAME  STATUS   TYPE  CREATED");
    assert!(lines[1].starts_with("main  created  lite  20"), "{text}");
}

#[test]
fn if_missing_takes_what_is_there_but_not_another_size() {
    let hutch = with_sandbox();
    let again =
        |args: &[&str]| hutch.cli(&[&["--json", "sandbox", "create", "main"], args].concat());
    assert_eq!(
        refused(&again(&[])),
        (1, "SANDBOX_ALREADY_EXISTS".to_owned())
    );
    assert_eq!(json(&again(&["--if-missing"]))["created"], json!(false));
    assert_eq!(
        json(&again(&["--if-missing", "--type", "lite"]))["created"],
        json!(false)
    );
    let other = again(&["--if-missing", "--type", "basic"]);
    assert_eq!(refused(&other), (1, "SANDBOX_ALREADY_EXISTS".to_owned()));
    let project = hutch.cli(&["--json", "project", "create", "default", "--if-missing"]);
    assert_eq!(json(&project)["slug"], "default");
}

#[test]
fn what_create_is_told_is_what_get_shows() {
    let hutch = Hutch::start();
    good(&hutch.cli(&[
        "sandbox",
        "create",
        "main",
        "--type",
        "standard-1",
        "--sleep-after",
        "90",
        "--keep-alive",
        "--env",
        "A=1=2",
    ]));
    let shown = json(&hutch.cli(&["sandbox", "get", "/sandboxes/main", "--json"]));
    assert_eq!(shown["instanceType"], "standard-1");
    assert_eq!(shown["sleepAfter"], "90s");
    assert_eq!(shown["keepAlive"], true);
    assert_eq!(shown["env"], json!({"A": "1=2"}));
    assert_eq!(shown["running"], false);
}

#[test]
fn work_survives_sleep_and_the_history_shows_it() {
    let hutch = with_sandbox();
    good(&hutch.cli_with(&["exec", "main", "-c", "cat > note"], b"kept"));
    good(&hutch.cli(&["sandbox", "sleep", "main"]));
    assert_eq!(
        json(&hutch.cli(&["sandbox", "get", "main", "--json"]))["status"],
        "stopped"
    );
    good(&hutch.cli(&["sandbox", "start", "main"]));
    assert_eq!(
        good(&hutch.cli(&["exec", "main", "--", "cat", "note"])),
        "kept"
    );
    let events = good(&hutch.cli(&["sandbox", "events", "main", "--json"]));
    let types: Vec<_> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone())
        .collect();
    for expected in [
        "sandbox/created",
        "sandbox/started",
        "sandbox/stopped",
        "sandbox/start-requested",
    ] {
        assert!(
            types.contains(&json!(expected)),
            "{expected} not in {types:?}"
        );
    }
}

#[test]
fn settings_are_changed_one_by_one() {
    let hutch = with_sandbox();
    let set = |args: &[&str]| hutch.cli(&[&["--json", "sandbox", "set", "main"], args].concat());
    let now = json(&set(&[
        "--sleep-after",
        "90",
        "--keep-alive",
        "on",
        "--env",
        "A=1=2",
    ]));
    assert_eq!(
        now,
        json!({"path": "/sandboxes/main", "sleepAfter": "90s", "keepAlive": true, "env": {"A": "1=2"}})
    );
    assert_eq!(
        good(&hutch.cli(&["exec", "main", "-c", "printf %s $A"])),
        "1=2"
    );
    let now = json(&set(&["--unset-env", "A", "--keep-alive", "off"]));
    assert_eq!(now["env"], json!({}));
    assert_eq!(
        (&now["keepAlive"], &now["sleepAfter"]),
        (&json!(false), &json!("90s"))
    );
    assert_eq!(refused(&set(&[])), (2, "USAGE".to_owned()));
    assert_eq!(
        refused(&set(&["--sleep-after", "1d"])),
        (1, "INVALID_SLEEP_AFTER".to_owned())
    );
    assert_eq!(
        refused(&set(&["--env", "A=1", "--unset-env", "A"])),
        (2, "USAGE".to_owned())
    );
}

#[test]
fn a_restart_ends_processes_and_keeps_work() {
    let hutch = with_sandbox();
    good(&hutch.cli(&[
        "exec",
        "main",
        "-c",
        "echo kept > note; sleep 600 >/dev/null 2>&1 &",
    ]));
    good(&hutch.cli(&["sandbox", "restart", "main"]));
    let left = good(&hutch.cli(&["exec", "main", "-c", "cat note; pgrep -xc sleep; true"]));
    assert_eq!(left, "kept\n0\n");
}

#[test]
fn logs_tell_of_boots_also_asleep() {
    let hutch = with_sandbox();
    good(&hutch.cli(&["exec", "main", "--", "true"]));
    good(&hutch.cli(&["sandbox", "sleep", "main"]));
    let log = json(&hutch.cli(&["sandbox", "logs", "main", "--json"]));
    assert!(log["text"].as_str().unwrap().contains("boot"), "{log}");
    let one = good(&hutch.cli(&["sandbox", "logs", "main", "--tail", "1"]));
    assert_eq!(one.lines().count(), 1, "{one}");
    assert!(log["text"].as_str().unwrap().ends_with(&one), "{log} {one}");
    assert_eq!(
        json(&hutch.cli(&["sandbox", "get", "main", "--json"]))["running"],
        false
    );
}

#[test]
fn destroying_all_needs_a_yes() {
    let hutch = with_sandbox();
    let output = hutch.cli(&["--json", "sandbox", "destroy", "--all"]);
    assert_eq!(refused(&output), (2, "USAGE".to_owned()));
    let output = hutch.cli(&["--json", "sandbox", "destroy", "--all", "--yes"]);
    assert_eq!(json(&output), json!({"destroyed": ["/sandboxes/main"]}));
}

#[test]
fn the_others_are_destroyed_though_one_is_unknown() {
    let hutch = with_sandbox();
    let output = hutch.cli(&["--json", "sandbox", "destroy", "none", "main"]);
    assert_eq!(output.status.code(), Some(1));
    let failure: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(failure["error"]["code"], "SANDBOX_NOT_FOUND");
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(done, json!({"destroyed": ["/sandboxes/main"]}));
    assert_eq!(json(&hutch.cli(&["sandbox", "list", "--json"])), json!([]));
}
