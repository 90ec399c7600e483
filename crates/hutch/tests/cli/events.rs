//! `hutch stream`, `hutch sandbox events --follow` and `hutch key`.

use super::{good, json, refused, with_sandbox};
use hutch_e2e::Hutch;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Stdio},
};

struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(hutch: &Hutch, args: &[&str]) -> Self {
        let mut command = hutch.command(args);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn event(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    fn end(mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

#[test]
fn a_sandbox_is_followed_from_its_birth_to_its_end_across_a_restart_of_the_server() {
    let mut hutch = with_sandbox();
    let port = hutch.url().rsplit(':').next().unwrap().to_owned();
    let mut follower = Follower::start(&hutch, &["sandbox", "events", "main", "-f", "--json"]);
    assert_eq!(follower.event()["type"], "sandbox/created");
    good(&hutch.cli(&["exec", "main", "--", "true"]));
    let started = follower.event();
    assert_eq!(started["type"], "sandbox/started");
    hutch.end(Signal::KILL);
    hutch.serve_at(&format!("127.0.0.1:{port}"));
    good(&hutch.cli(&["sandbox", "destroy", "main"]));
    let mut last = started["offset"].as_u64().unwrap();
    loop {
        let event = follower.event();
        let offset = event["offset"].as_u64().unwrap();
        assert_eq!(offset, last + 1, "no gap, nothing twice: {event}");
        last = offset;
        if event["type"] == "sandbox/destroyed" {
            break;
        }
    }
    assert_eq!(follower.end(Signal::INT), Some(130));
}

#[test]
fn a_stream_is_appended_to_read_and_followed() {
    let hutch = Hutch::start();
    let append = |payload: &str, more: &[&str]| {
        let args = [
            "--json",
            "stream",
            "append",
            "/notes",
            "--type",
            "notes/added",
        ];
        json(&hutch.cli(&[&args, &["--payload", payload][..], more].concat()))
    };
    for n in 1..=12 {
        assert_eq!(append(&json!({ "n": n }).to_string(), &[])["offset"], n);
    }
    let again = append(r#"{"n": 13}"#, &["--key", "k", "--expect", "13"]);
    let same = append(r#"{"n": 13}"#, &["--key", "k"]);
    assert_eq!(same["offset"], again["offset"]);
    let piped = hutch.cli_with(
        &[
            "stream",
            "append",
            "/notes",
            "--type",
            "notes/piped",
            "--payload",
            "-",
            "--json",
        ],
        br#"{"from": "stdin"}"#,
    );
    assert_eq!(json(&piped)["payload"], json!({"from": "stdin"}));

    let read = |args: &[&str]| -> Vec<u64> {
        let text = good(&hutch.cli(&[&["--json", "stream", "read", "/notes"], args].concat()));
        let events = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        events
            .map(|event| event["offset"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(read(&[]), (1..=14).collect::<Vec<_>>());
    assert_eq!(read(&["--after", "12"]), [13, 14]);
    assert_eq!(read(&["--newest-first", "-n", "2"]), [14, 13]);
    assert_eq!(read(&["--type", "notes/piped"]), [14]);
    let list = json(&hutch.cli(&["stream", "list", "--json"]));
    let notes = list
        .as_array()
        .unwrap()
        .iter()
        .find(|stream| stream["path"] == "/notes");
    assert_eq!(notes.unwrap()["maxOffset"], 14);
    let people = good(&hutch.cli(&["stream", "read", "/notes", "-n", "1"]));
    assert!(
        people.starts_with("     1  20") && people.ends_with("notes/added  {\"n\":1}\n"),
        "{people}"
    );

    let mut follower = Follower::start(&hutch, &["stream", "tail", "/notes", "-n", "2", "--json"]);
    assert_eq!(follower.event()["offset"], 13);
    assert_eq!(follower.event()["offset"], 14);
    append("{}", &[]);
    assert_eq!(follower.event()["offset"], 15);
    assert_eq!(follower.end(Signal::TERM), Some(143));
}

#[test]
fn a_reader_that_has_seen_enough_ends_a_follower() {
    let hutch = Hutch::start();
    let append = ["stream", "append", "/notes", "--type", "notes/added"];
    good(&hutch.cli(&append));
    let mut follower = Follower::start(&hutch, &["stream", "tail", "/notes", "--json"]);
    follower.event();
    let Follower { mut child, lines } = follower;
    drop(lines);
    hutch_e2e::wait_until("the follower ends", || {
        good(&hutch.cli(&append));
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_key_opens_its_project_until_it_is_revoked() {
    let hutch = Hutch::start();
    good(&hutch.cli(&["project", "create", "demo"]));
    let args = [
        "key",
        "create",
        "-p",
        "demo",
        "--expires",
        "30d",
        "--label",
        "laptop",
        "--json",
    ];
    let key = json(&hutch.cli(&args));
    let (id, token) = (key["id"].as_str().unwrap(), key["token"].as_str().unwrap());
    let with = |args: &[&str]| hutch.cli(&[&["--json", "--token", token], args].concat());
    assert_eq!(json(&with(&["sandbox", "list", "-p", "demo"])), json!([]));
    assert_eq!(
        with(&["sandbox", "list", "-p", "default"]).status.code(),
        Some(1)
    );
    assert_eq!(
        refused(&with(&["key", "list"])),
        (1, "FORBIDDEN".to_owned())
    );
    let list = good(&hutch.cli(&["key", "list", "--json"]));
    assert!(list.contains(id) && !list.contains(token), "{list}");
    let table = good(&hutch.cli(&["key", "list"]));
    assert!(
        table.contains("valid") && table.contains("laptop"),
        "{table}"
    );
    good(&hutch.cli(&["key", "revoke", id]));
    assert_eq!(
        refused(&with(&["sandbox", "list", "-p", "demo"])),
        (1, "UNAUTHENTICATED".to_owned())
    );
    let bare = hutch.cli(&["key", "create"]);
    let token = good(&bare);
    assert_eq!(token.lines().count(), 1, "the token alone is on stdout");
    let all = hutch.cli(&["--token", token.trim(), "sandbox", "list", "--json"]);
    assert_eq!(json(&all), json!([]));
}
