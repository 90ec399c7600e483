//! What was called, what came back, and when.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value as Json;

use crate::plan::{Op, Step};

/// A moment: the order in which this test did things.
pub type Moment = u64;

/// What a command saw inside.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub env: BTreeMap<&'static str, String>,
    /// Names and contents of the files that are there.
    pub files: BTreeMap<String, String>,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    Done,
    Saw(View),
    /// The sandbox's boot, and whether it was the same before and after.
    Boot {
        boot: String,
        steady: bool,
        missing: Option<String>,
    },
    Refused {
        code: String,
        admitted: Option<bool>,
        message: String,
    },
    /// The connection broke: it may have been done.
    Lost,
    /// There was nothing to do it to.
    Skipped,
    /// An answer that no correct server gives.
    Absurd(String),
}

/// One call.
#[derive(Clone, Debug)]
pub struct Entry {
    pub step: Step,
    pub begun: Moment,
    pub ended: Moment,
    pub outcome: Outcome,
}

impl Entry {
    pub fn done(&self) -> bool {
        matches!(
            self.outcome,
            Outcome::Done | Outcome::Saw(_) | Outcome::Boot { .. }
        )
    }

    /// Whether it may have had an effect.
    pub fn may_have_run(&self) -> bool {
        match &self.outcome {
            Outcome::Refused { code, admitted, .. } => {
                *admitted != Some(false) && !NEVER_RUN.contains(&code.as_str())
            }
            Outcome::Skipped => false,
            _ => true,
        }
    }

    pub fn overlaps(&self, begun: Moment, ended: Moment) -> bool {
        self.begun < ended && begun < self.ended
    }

    /// Whether it ends machines.
    pub fn ends_machines(&self) -> bool {
        matches!(
            self.step.op,
            Op::Sleep | Op::Restart | Op::Destroy | Op::KillDaemon
        ) && self.may_have_run()
    }
}

/// Refusals that say that nothing was done.
const NEVER_RUN: [&str; 3] = [
    "SANDBOX_NOT_FOUND",
    "SANDBOX_NAME_RETIRED",
    "SANDBOX_CREATE_PENDING",
];

/// All that is known of one sandbox.
pub struct Life {
    pub name: String,
    pub entries: Vec<Entry>,
    pub events: Vec<Json>,
    /// When a server was killed, and when the next one served.
    pub gaps: Vec<(Moment, Moment)>,
    /// What `describe` said in the end.
    pub last: Json,
    /// What the data directory held of it in the end.
    pub kept: Vec<String>,
}

impl Life {
    /// How many events there are of a type.
    pub fn count(&self, kind: &str) -> usize {
        let of = |event: &&Json| event["type"] == format!("sandbox/{kind}");
        self.events.iter().filter(of).count()
    }
}

/// What led to a fault, for people: the sandbox's history up to the first step
/// that the fault names, or to its end.
pub fn tail(life: &Life, fault: &str) -> String {
    const SHOWN: usize = 40;
    let named = fault.split("step ").nth(1).and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    });
    let until = life
        .entries
        .iter()
        .filter(|entry| named == Some(entry.step.number));
    let until = until.map(|entry| entry.ended).max().unwrap_or(Moment::MAX);
    let mut lines: Vec<(Moment, String)> = life
        .entries
        .iter()
        .map(|entry| (entry.begun, line(entry)))
        .collect();
    let gaps = life.gaps.iter();
    lines.extend(gaps.map(|(begun, ended)| {
        (
            *begun,
            format!("{begun:>6}..{ended:<6} the server is killed; the next one serves"),
        )
    }));
    lines.retain(|(begun, _)| *begun <= until);
    lines.sort();
    let mut text = String::new();
    for (_, line) in lines.iter().skip(lines.len().saturating_sub(SHOWN)) {
        let _ = writeln!(text, "{line}");
    }
    let kinds: Vec<_> = life
        .events
        .iter()
        .map(|event| event["type"].as_str().unwrap_or("?"))
        .collect();
    let _ = writeln!(text, "events: {}", kinds.join(" ").replace("sandbox/", ""));
    text
}

fn line(entry: &Entry) -> String {
    let Entry {
        step,
        begun,
        ended,
        outcome,
    } = entry;
    let outcome = match outcome {
        Outcome::Saw(view) => format!("saw env {:?}, files {:?}", view.env, view.files.keys()),
        other => format!("{other:?}"),
    };
    format!(
        "{begun:>6}..{ended:<6} step {} client {} {:?}: {outcome}",
        step.number, step.client, step.op
    )
}
