//! Names: claimed once, by one creator, and retired for ever.

use hutch_protocol::event::{BirthConfig, CreateRequested, SandboxEvent};
use hutch_protocol::{ApiError, CreateInput, ErrorCode, SandboxPath, Timestamp};
use serde_json::{Map, Value};

/// The events of a birth, in order.
pub(crate) fn birth_events(input: &CreateInput) -> Vec<SandboxEvent> {
    let config = BirthConfig {
        instance_type: input.instance_type,
    };
    let mut events = vec![SandboxEvent::Created { config }];
    let env = input.env.clone().filter(|env| !env.is_empty());
    if env.is_some() || input.sleep_after.is_some() || input.keep_alive.is_some() {
        let (sleep_after, keep_alive) = (input.sleep_after, input.keep_alive);
        events.push(SandboxEvent::Configured {
            env,
            sleep_after,
            keep_alive,
        });
    }
    events
}

pub(crate) fn not_found(path: &SandboxPath) -> ApiError {
    ApiError::new(
        ErrorCode::SandboxNotFound,
        format!(
            "sandbox {path} does not exist; create it with itx.sandboxes.get({path:?}).create({{}}) or `hutch sandbox create {}`",
            path.name(),
            path = path.to_string(),
        ),
    )
    .with("path", path.to_string())
}

pub(crate) fn exists(path: &SandboxPath) -> ApiError {
    ApiError::new(
        ErrorCode::SandboxAlreadyExists,
        format!(
            "sandbox {path} already exists; use itx.sandboxes.get({path:?}), or pick another name",
            path = path.to_string()
        ),
    )
    .with("path", path.to_string())
}

pub(crate) fn retired(path: &SandboxPath, at: Timestamp) -> ApiError {
    ApiError::new(
        ErrorCode::SandboxNameRetired,
        format!("sandbox {path} was destroyed at {at} and its name cannot be reused; create one with a new name"),
    )
    .with("path", path.to_string())
    .with("destroyedAt", at.to_string())
}

/// A claim without a birth is in the way; says how `asked` differs from it.
pub(crate) fn pending(claim: &CreateRequested, asked: Option<&CreateInput>) -> ApiError {
    let path = claim.path.to_string();
    let base = format!(
        "creation of sandbox {path} did not finish; retry create with the original options"
    );
    let difference = asked
        .map(|asked| difference(&claim.input, asked))
        .unwrap_or_default();
    let message = if difference.is_empty() {
        base
    } else {
        let names = difference.keys().cloned().collect::<Vec<_>>().join(", ");
        format!("{base} (these differ: {names})")
    };
    ApiError::new(ErrorCode::SandboxCreatePending, message)
        .with("path", path)
        .with("difference", difference)
}

/// The members of two create requests that are not equal.
fn difference(claimed: &CreateInput, asked: &CreateInput) -> Map<String, Value> {
    let members = |input: &CreateInput| match serde_json::to_value(input) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let (claimed, asked) = (members(claimed), members(asked));
    let names = claimed.keys().chain(asked.keys());
    names
        .filter(|name| claimed.get(*name) != asked.get(*name))
        .map(|name| {
            let side = |of: &Map<String, Value>| of.get(name).cloned().unwrap_or(Value::Null);
            let pair = serde_json::json!({ "claimed": side(&claimed), "asked": side(&asked) });
            (name.clone(), pair)
        })
        .collect()
}
