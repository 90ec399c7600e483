//! The model itself: it lets legal histories pass and finds each kind of fault.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::history::{Entry, Life, Outcome, View};
use crate::model::judge;
use crate::plan::{Op, Step};
use crate::step::body;

fn entry(number: usize, op: Op, (begun, ended): (u64, u64), outcome: Outcome) -> Entry {
    let step = Step {
        number,
        slot: 0,
        life: 0,
        client: 0,
        op,
    };
    Entry {
        step,
        begun,
        ended,
        outcome,
    }
}

fn saw(env: &str, files: &[usize]) -> Outcome {
    let env = BTreeMap::from([("A", env.to_owned()), ("B", "-".to_owned())]);
    let files = files
        .iter()
        .map(|number| (format!("w{number}"), body(*number)));
    Outcome::Saw(View {
        env,
        files: files.collect(),
    })
}

fn refused(code: &str, admitted: bool) -> Outcome {
    Outcome::Refused {
        code: code.into(),
        admitted: Some(admitted),
        message: String::new(),
    }
}

fn life(entries: Vec<Entry>, events: &[&str]) -> Life {
    let mut env = serde_json::Map::new();
    let events: Vec<Json> = events
        .iter()
        .enumerate()
        .map(|(index, kind)| {
            let (kind, value) = kind.split_once(' ').unwrap_or((kind, ""));
            let mut payload = json!({});
            if !value.is_empty() {
                payload["env"] = json!({ "A": value });
                env.insert("A".into(), json!(value));
            }
            json!({"offset": index + 1, "type": format!("sandbox/{kind}"), "payload": payload})
        })
        .collect();
    let awake = events
        .iter()
        .rev()
        .find_map(|event| match event["type"].as_str() {
            Some("sandbox/started") => Some(true),
            Some("sandbox/stopped" | "sandbox/destroyed") => Some(false),
            _ => None,
        });
    let mut entries = entries;
    entries.insert(0, entry(0, Op::Create, (1, 2), Outcome::Done));
    let last = json!({"running": awake.unwrap_or(false), "env": env});
    Life {
        name: "s0-0".into(),
        entries,
        events,
        gaps: vec![(50, 60)],
        last,
        kept: Vec::new(),
    }
}

const AWAKE: [&str; 2] = ["created", "started"];

#[test]
fn a_life_without_faults_passes() {
    let entries = vec![
        entry(1, Op::Write, (3, 4), saw("-", &[1])),
        entry(2, Op::SetEnv("A"), (5, 6), Outcome::Done),
        entry(3, Op::Put, (49, 60), Outcome::Lost),
        entry(4, Op::Sleep, (61, 70), Outcome::Done),
        entry(
            5,
            Op::Write,
            (62, 68),
            refused("OPERATION_INTERRUPTED", true),
        ),
        entry(6, Op::Look, (71, 72), saw("2", &[1, 3])),
    ];
    let events = [
        "created",
        "started",
        "configured 2",
        "sleep-requested",
        "backup-created",
        "stopped",
        "started",
    ];
    assert_eq!(judge(&life(entries, &events)), Ok(()));
}

#[test]
fn each_kind_of_fault_is_found() {
    let torn = Outcome::Saw(View {
        files: BTreeMap::from([("w1".into(), "<st".into())]),
        ..View::default()
    });
    let boot = |boot: &str, missing: Option<&str>| Outcome::Boot {
        boot: boot.into(),
        steady: true,
        missing: missing.map(str::to_owned),
    };
    let write = || entry(1, Op::Write, (3, 4), saw("-", &[1]));
    let set = |number, when| entry(number, Op::SetEnv("A"), when, Outcome::Done);
    let faults: [(&str, Vec<Entry>, &[&str]); 14] = [
        (
            "acknowledged",
            vec![write(), entry(2, Op::Look, (5, 6), saw("-", &[]))],
            &AWAKE,
        ),
        (
            "torn",
            vec![
                entry(1, Op::Put, (3, 60), Outcome::Lost),
                entry(2, Op::Look, (61, 62), torn),
            ],
            &AWAKE,
        ),
        (
            "nobody wrote",
            vec![entry(2, Op::Look, (5, 6), saw("-", &[9]))],
            &AWAKE,
        ),
        (
            "was not written",
            vec![
                entry(1, Op::Sleep, (3, 6), Outcome::Done),
                entry(2, Op::Put, (3, 5), refused("OPERATION_INTERRUPTED", false)),
                entry(3, Op::Look, (7, 8), saw("-", &[2])),
            ],
            &AWAKE,
        ),
        (
            "which step 2 saw",
            vec![
                entry(1, Op::Put, (3, 60), Outcome::Lost),
                entry(2, Op::Look, (61, 62), saw("-", &[1])),
                entry(3, Op::Look, (63, 64), saw("-", &[])),
            ],
            &AWAKE,
        ),
        (
            "had changed it",
            vec![set(1, (3, 4)), entry(2, Op::Look, (5, 6), saw("-", &[]))],
            &["created", "started", "configured 1"],
        ),
        ("not stored", vec![set(1, (3, 4))], &AWAKE),
        (
            "before the earlier",
            vec![set(1, (3, 4)), set(2, (5, 6))],
            &["created", "configured 2", "configured 1"],
        ),
        (
            "nobody set",
            vec![entry(2, Op::Look, (5, 6), saw("7", &[]))],
            &AWAKE,
        ),
        (
            "destroyed sandbox",
            vec![
                entry(1, Op::Destroy, (3, 4), Outcome::Done),
                entry(2, Op::Start, (5, 6), Outcome::Done),
            ],
            &["created", "destroyed"],
        ),
        (
            "no legal answer",
            vec![entry(
                1,
                Op::Look,
                (3, 4),
                refused("OPERATION_INTERRUPTED", true),
            )],
            &AWAKE,
        ),
        (
            "no server was killed",
            vec![entry(1, Op::Look, (3, 4), Outcome::Lost)],
            &AWAKE,
        ),
        (
            "nothing had ended it",
            vec![
                entry(1, Op::Spawn, (3, 4), boot("a", None)),
                entry(2, Op::Processes, (5, 6), boot("b", None)),
            ],
            &AWAKE,
        ),
        (
            "is gone",
            vec![entry(2, Op::Processes, (5, 6), boot("a", Some("p")))],
            &AWAKE,
        ),
    ];
    for (expected, entries, events) in faults {
        let fault = judge(&life(entries, events)).unwrap_err();
        assert!(fault.contains(expected), "{expected}: {fault}");
    }
}

#[test]
fn streams_that_are_no_life_are_found() {
    for events in [
        &["started"][..],
        &["created", "started", "started"],
        &["created", "started", "backup-created"],
        &[
            "created",
            "started",
            "backup-created",
            "configured 1",
            "stopped",
        ],
        &["created", "destroyed", "started"],
        &["created", "stopped"],
        &["created", "started", "backup-failed", "stopped"],
    ] {
        assert!(judge(&life(Vec::new(), events)).is_err(), "{events:?}");
    }
    let mut left = life(Vec::new(), &["created", "destroyed"]);
    left.kept.push("volumes/s0-0".into());
    assert!(judge(&left).unwrap_err().contains("left"));
    let mut gap = life(Vec::new(), &AWAKE);
    gap.events[1]["offset"] = json!(3);
    assert!(judge(&gap).unwrap_err().contains("offset"));
}
