//! `hutch bench`.

use super::json;
use hutch_e2e::Hutch;
use serde_json::json;

#[test]
fn the_numbers_come_with_their_parts_and_nothing_stays() {
    let hutch = Hutch::start();
    let report = json(&hutch.cli(&["bench", "-n", "1", "--json", "--only", "commands"]));
    for name in ["create_exec", "wake_exec", "exec", "bash_true"] {
        let fields = report[name].as_object().expect(name);
        assert_eq!(fields["n"], 1, "{name}");
        assert_eq!(fields["unit"], "ms", "{name}");
        assert!(
            fields["p50"].as_f64().unwrap() > 0.0 && fields["p95"] == fields["p99"],
            "{name}"
        );
    }
    for part in [
        "boot_workspace",
        "boot_machine",
        "boot_commit",
        "command_and_transport",
    ] {
        assert_eq!(report["breakdown"]["wake_exec"][part]["n"], 1, "{part}");
    }
    let left = json(&hutch.cli(&["sandbox", "list", "--json"]));
    assert_eq!(left, json!([]));
}

#[test]
fn what_needs_the_data_directory_is_skipped_with_words() {
    let hutch = Hutch::start();
    let report = json(&hutch.cli(&["bench", "--json", "--only", "memory"]));
    let reason = report["skipped"]["memory"].as_str().unwrap();
    assert!(reason.contains("--url"), "{reason}");
}

#[test]
fn fifty_at_once_are_all_answered() {
    let hutch = Hutch::start();
    let report = json(&hutch.cli(&["bench", "-n", "1", "--json", "--only", "burst"]));
    assert_eq!(report["burst50_create_exec"]["n"], 50);
}
