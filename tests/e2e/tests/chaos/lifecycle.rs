//! The words that a sandbox's stream may be.

use serde_json::Value as Json;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Unborn,
    Asleep,
    Awake,
    /// A snapshot is stored; the end of the machine is the next event.
    Kept,
    Destroyed,
}

/// Reads a stream from its start; gives where it ends.
pub fn read(events: &[Json]) -> Result<State, String> {
    let mut state = State::Unborn;
    for (index, event) in events.iter().enumerate() {
        let offset = event["offset"].as_u64();
        if offset != Some(index as u64 + 1) {
            return Err(format!("event {} has offset {offset:?}", index + 1));
        }
        let kind = event["type"].as_str().unwrap_or_default();
        state = next(state, kind)
            .ok_or_else(|| format!("{kind} at offset {} in state {state:?}", index + 1))?;
    }
    match state {
        State::Kept => Err("the last event is a snapshot without an end".into()),
        state => Ok(state),
    }
}

fn next(state: State, kind: &str) -> Option<State> {
    use State::{Asleep, Awake, Destroyed, Kept, Unborn};
    let kind = kind.strip_prefix("sandbox/")?;
    Some(match (state, kind) {
        (Unborn, "created") => Asleep,
        (Asleep | Awake, "configured" | "start-requested" | "destroy-requested") => state,
        (Asleep, "started") => Awake,
        (Awake, "sleep-requested" | "workspace-restored") => Awake,
        (Awake, "backup-created") => Kept,
        (Awake | Kept, "stopped") => Asleep,
        (Asleep | Awake, "destroyed") => Destroyed,
        _ => return None,
    })
}
