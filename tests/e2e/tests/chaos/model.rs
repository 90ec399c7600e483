//! Which histories of one sandbox are legal.

use std::collections::BTreeMap;

use crate::history::{Entry, Life, Moment, Outcome};
use crate::lifecycle::{self, State};
use crate::plan::{Op, dozes};
use crate::step::body;

/// Why a history is not legal; the first reason that is found.
pub fn judge(life: &Life) -> Result<(), String> {
    let end = lifecycle::read(&life.events)?;
    for entry in &life.entries {
        answer(life, entry).map_err(|fault| format!("step {}: {fault}", entry.step.number))?;
    }
    files(life)?;
    environment(life)?;
    boots(life)?;
    last(life, end)
}

fn before(a: &Entry, b: &Entry) -> bool {
    a.ended < b.begun
}

fn of<'a>(life: &'a Life, wanted: impl Fn(Op) -> bool + 'a) -> impl Iterator<Item = &'a Entry> {
    life.entries
        .iter()
        .filter(move |entry| wanted(entry.step.op))
}

/// Whether something ended the sandbox's machine in that time.
fn disturbed(life: &Life, begun: Moment, ended: Moment) -> bool {
    life.entries.iter().any(|entry| {
        // A server that died with it may tell of a killed daemon much later.
        let lost_kill = entry.step.op == Op::KillDaemon && matches!(entry.outcome, Outcome::Lost);
        entry.ends_machines() && (entry.overlaps(begun, ended) || lost_kill && entry.begun < ended)
    })
}

/// Whether an answer is one that a correct server can give.
fn answer(life: &Life, entry: &Entry) -> Result<(), String> {
    let created =
        || of(life, |op| op == Op::Create).any(|create| create.done() && before(create, entry));
    let claimed = || {
        of(life, |op| op == Op::Create)
            .any(|create| create.begun < entry.begun && create.may_have_run())
    };
    let destroys = || of(life, |op| op == Op::Destroy).filter(|destroy| destroy.may_have_run());
    match &entry.outcome {
        Outcome::Absurd(fault) => Err(fault.clone()),
        Outcome::Skipped => Ok(()),
        Outcome::Lost
            if life
                .gaps
                .iter()
                .any(|(begun, ended)| entry.begun < *ended && *begun < entry.ended) =>
        {
            Ok(())
        }
        Outcome::Lost => Err("the connection broke, and no server was killed".into()),
        Outcome::Done | Outcome::Saw(_) | Outcome::Boot { .. } => {
            // A destroyed one can be destroyed again and described.
            let passive = matches!(entry.step.op, Op::Destroy | Op::Processes | Op::KillDaemon);
            let dead = destroys().any(|destroy| destroy.done() && before(destroy, entry));
            if dead && !passive {
                return Err("it was done on a destroyed sandbox".into());
            }
            if entry.step.op == Op::Create && claimed() && created() {
                return Err("it was created twice".into());
            }
            Ok(())
        }
        Outcome::Refused { code, message, .. } => {
            let legal = match code.as_str() {
                "SANDBOX_NOT_FOUND" | "SANDBOX_CREATE_PENDING" => !created(),
                "SANDBOX_ALREADY_EXISTS" => entry.step.op == Op::Create && claimed(),
                "SANDBOX_NAME_RETIRED" => destroys().any(|destroy| destroy.begun < entry.ended),
                "OPERATION_INTERRUPTED" | "CONTAINER_UNAVAILABLE" => {
                    disturbed(life, entry.begun, entry.ended)
                }
                _ => false,
            };
            if legal {
                Ok(())
            } else {
                Err(format!("{code} is no legal answer here: {message}"))
            }
        }
    }
}

/// Acknowledged files are there, others whole or not at all, none goes.
fn files(life: &Life) -> Result<(), String> {
    let mut writes = BTreeMap::new();
    for entry in of(life, |op| matches!(op, Op::Write | Op::Put)) {
        writes.insert(format!("w{}", entry.step.number), entry);
    }
    let looks = || {
        life.entries
            .iter()
            .filter_map(|entry| match &entry.outcome {
                Outcome::Saw(view) => Some((entry, view)),
                _ => None,
            })
    };
    for (look, view) in looks() {
        let number = look.step.number;
        for (file, text) in &view.files {
            let Some(write) = writes.get(file) else {
                return Err(format!("step {number} saw {file}, which nobody wrote"));
            };
            if *text != body(write.step.number) {
                return Err(format!("step {number} saw {file} torn: {text:?}"));
            }
            if write.begun > look.ended || !write.may_have_run() {
                return Err(format!("step {number} saw {file}, which was not written"));
            }
        }
        for (file, write) in &writes {
            let own = write.step.number == number;
            if write.done() && (before(write, look) || own) && !view.files.contains_key(file) {
                return Err(format!(
                    "step {number} did not see {file}, which was acknowledged"
                ));
            }
        }
        for (earlier, seen) in looks().filter(|(earlier, _)| before(earlier, look)) {
            if let Some(file) = seen
                .files
                .keys()
                .find(|file| !view.files.contains_key(*file))
            {
                return Err(format!(
                    "step {number} did not see {file}, which step {} saw",
                    earlier.step.number
                ));
            }
        }
    }
    Ok(())
}

/// The stream orders the changes; each command saw one that was in force.
fn environment(life: &Life) -> Result<(), String> {
    let mut stored: BTreeMap<usize, u64> = BTreeMap::new();
    for event in life
        .events
        .iter()
        .filter(|event| event["type"] == "sandbox/configured")
    {
        let values = event["payload"]["env"].as_object().into_iter().flatten();
        for number in values.filter_map(|(_, value)| value.as_str()?.parse().ok()) {
            if stored
                .insert(number, event["offset"].as_u64().unwrap_or_default())
                .is_some()
            {
                return Err(format!("the change of step {number} is stored twice"));
            }
        }
    }
    let changes: Vec<&Entry> = of(life, |op| matches!(op, Op::SetEnv(_))).collect();
    for change in &changes {
        let number = change.step.number;
        let is_stored = stored.contains_key(&number);
        if change.done() && !is_stored {
            return Err(format!(
                "the change of step {number} was acknowledged and is not stored"
            ));
        }
        if !change.may_have_run() && is_stored {
            return Err(format!(
                "the change of step {number} was refused and is stored"
            ));
        }
        let late = changes.iter().find(|other| {
            before(change, other)
                && stored
                    .get(&other.step.number)
                    .is_some_and(|at| stored.get(&number).is_some_and(|own| at < own))
        });
        if let Some(late) = late {
            return Err(format!(
                "the change of step {} is stored before the earlier one of step {number}",
                late.step.number
            ));
        }
    }
    for entry in &life.entries {
        let Outcome::Saw(view) = &entry.outcome else {
            continue;
        };
        for (key, value) in &view.env {
            let of_key = || {
                changes
                    .iter()
                    .filter(|change| change.step.op == Op::SetEnv(key))
            };
            let seen = match value.as_str() {
                "-" => None,
                value => Some(
                    of_key()
                        .find(|change| change.step.number.to_string() == *value)
                        .ok_or_else(|| {
                            format!(
                                "step {} saw {key}={value}, which nobody set",
                                entry.step.number
                            )
                        })?,
                ),
            };
            if seen.is_some_and(|change| change.begun > entry.ended) {
                return Err(format!(
                    "step {} saw {key}={value} before it was set",
                    entry.step.number
                ));
            }
            let at = seen
                .and_then(|change| stored.get(&change.step.number))
                .copied()
                .unwrap_or(0);
            let newer = of_key().find(|change| {
                let stored = stored
                    .get(&change.step.number)
                    .is_some_and(|other| *other > at);
                stored && before(change, entry)
            });
            if let Some(newer) = newer {
                return Err(format!(
                    "step {} saw {key}={value}, but step {} had changed it before",
                    entry.step.number, newer.step.number
                ));
            }
        }
    }
    Ok(())
}

/// A machine ends only when something ends it, and its processes with it.
fn boots(life: &Life) -> Result<(), String> {
    if dozes(&life.name) {
        return Ok(());
    }
    let mut seen: Option<(&Entry, &String)> = None;
    for entry in &life.entries {
        let Outcome::Boot {
            boot,
            steady,
            missing,
        } = &entry.outcome
        else {
            continue;
        };
        if let Some(id) = missing
            .as_ref()
            .filter(|_| *steady && !disturbed(life, entry.begun, entry.ended))
        {
            return Err(format!(
                "step {}: process {id} is gone, and boot {boot} is not",
                entry.step.number
            ));
        }
        if let Some((earlier, other)) = seen
            && other != boot
            && !disturbed(life, earlier.begun, entry.ended)
        {
            return Err(format!(
                "boot {other} of step {} became {boot} at step {}, and nothing had ended it",
                earlier.step.number, entry.step.number
            ));
        }
        seen = Some((entry, boot));
    }
    Ok(())
}

/// What is told of it in the end is what its stream says.
fn last(life: &Life, end: State) -> Result<(), String> {
    let running = life.last["running"].as_bool();
    if running != Some(end == State::Awake) && !dozes(&life.name) {
        return Err(format!(
            "its stream ends in {end:?} and it says running: {running:?}"
        ));
    }
    let destroyed = of(life, |op| op == Op::Destroy).any(Entry::done);
    if destroyed && end != State::Destroyed {
        return Err("it was destroyed and its stream does not say so".into());
    }
    if end == State::Destroyed && !life.kept.is_empty() {
        return Err(format!("it is destroyed and left {:?}", life.kept));
    }
    let mut env = serde_json::Map::new();
    for event in life
        .events
        .iter()
        .filter(|event| event["type"] == "sandbox/configured")
    {
        env.extend(
            event["payload"]["env"]
                .as_object()
                .cloned()
                .unwrap_or_default(),
        );
    }
    if life.last["env"] != serde_json::Value::Object(env.clone()) {
        return Err(format!(
            "its stream folds into env {env:?} and it says {}",
            life.last["env"]
        ));
    }
    Ok(())
}
