//! Environment variables of a sandbox and of single calls.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::limits::{ENV_BYTES_MAX, ENV_COUNT_MAX};
use crate::path::shown;
use crate::{ApiError, ErrorCode};

/// A whole environment: name to value.
pub type EnvMap = BTreeMap<String, String>;

/// A change to an environment: a value sets, `None` unsets.
pub type EnvPatch = BTreeMap<String, Option<String>>;

/// Checks one name.
///
/// # Errors
/// `INVALID_ENV` if it is empty, too long, or holds `=` or NUL.
pub fn check_name(name: &str) -> Result<(), ApiError> {
    let why = if name.is_empty() {
        "the name is empty"
    } else if name.contains('=') {
        "the name holds '='"
    } else if name.contains('\0') {
        "the name holds a NUL"
    } else if name.len() > 1024 {
        "the name has more than 1024 bytes"
    } else {
        return Ok(());
    };
    Err(refused(name, why))
}

/// Checks a whole patch: each name, each value, and the sizes.
///
/// # Errors
/// `INVALID_ENV` naming the variable and the reason. Values never appear.
pub fn check_patch(patch: &EnvPatch) -> Result<(), ApiError> {
    if patch.len() > ENV_COUNT_MAX {
        return Err(refused("", "more than 1024 variables"));
    }
    let mut bytes = 0;
    for (name, value) in patch {
        check_name(name)?;
        let value = value.as_deref().unwrap_or_default();
        if value.contains('\0') {
            return Err(refused(name, "the value holds a NUL"));
        }
        bytes += name.len() + value.len();
    }
    if bytes > ENV_BYTES_MAX {
        return Err(refused("", "more than 32 KiB in all"));
    }
    Ok(())
}

/// Reads a patch from JSON: an object of strings and nulls.
///
/// # Errors
/// `INVALID_ENV` for any other shape and for what [`check_patch`] refuses.
pub fn patch_from_json(value: &Value) -> Result<EnvPatch, ApiError> {
    let Value::Object(map) = value else {
        return Err(refused("", "env must be an object of strings"));
    };
    let mut patch = EnvPatch::new();
    for (name, value) in map {
        let value = match value {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            _ => return Err(refused(name, "the value is not a string")),
        };
        patch.insert(name.clone(), value);
    }
    check_patch(&patch)?;
    Ok(patch)
}

/// Applies a patch.
pub fn apply(env: &mut EnvMap, patch: &EnvPatch) {
    for (name, value) in patch {
        match value {
            Some(value) => env.insert(name.clone(), value.clone()),
            None => env.remove(name),
        };
    }
}

fn refused(name: &str, why: &str) -> ApiError {
    let subject = if name.is_empty() {
        "invalid env".to_owned()
    } else {
        format!("invalid env variable {:?}", shown(name))
    };
    ApiError::new(ErrorCode::InvalidEnv, format!("{subject}: {why}"))
        .with("name", shown(name))
        .with("reason", why)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn odd_names_are_refused_and_odd_values_kept() {
        let good = json!({"A": "a=b", "B": "", "c-d": "\n$HOME`id`", "GONE": null});
        let patch = patch_from_json(&good).unwrap();
        assert_eq!(patch["A"].as_deref(), Some("a=b"));
        assert_eq!(patch["GONE"], None);
        for bad in [
            json!({"": "x"}),
            json!({"A=B": "x"}),
            json!({"A\u{0}": "x"}),
            json!({"A": "\u{0}"}),
            json!({"A": 1}),
            json!([]),
            json!("A=1"),
            json!({"A": "x".repeat(40_000)}),
        ] {
            assert_eq!(
                patch_from_json(&bad).unwrap_err().code,
                ErrorCode::InvalidEnv
            );
        }
    }

    #[test]
    fn a_refusal_never_shows_a_value() {
        let error = patch_from_json(&json!({"K": "hunter2\u{0}"})).unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn null_unsets() {
        let mut env = EnvMap::from([("A".into(), "1".into()), ("B".into(), "2".into())]);
        apply(
            &mut env,
            &patch_from_json(&json!({"A": null, "C": "3"})).unwrap(),
        );
        assert_eq!(
            env,
            EnvMap::from([("B".into(), "2".into()), ("C".into(), "3".into())])
        );
    }
}
