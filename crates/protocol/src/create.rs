//! What a create request asks for.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::env::patch_from_json;
use crate::{ApiError, EnvPatch, ErrorCode, InstanceType, SleepAfter};

/// The configuration that a sandbox is born with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateInput {
    /// The size, fixed for life. Default: `basic`.
    #[serde(default)]
    pub instance_type: InstanceType,
    /// The idle time; absent means the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep_after: Option<SleepAfter>,
    /// Whether the idle timer is off; absent means it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<bool>,
    /// The first environment; a null is an unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<EnvPatch>,
}

impl CreateInput {
    /// Reads and checks what a caller sent. Absent and null mean the default;
    /// unknown members are refused, so that a misspelled one is not lost.
    ///
    /// # Errors
    /// The typed refusal of the first member that does not fit.
    pub fn from_json(value: &Value) -> Result<Self, ApiError> {
        let empty = Map::new();
        let map = match value {
            Value::Object(map) => map,
            Value::Null => &empty,
            _ => return Err(invalid("create takes one object of options")),
        };
        let mut input = Self::default();
        for (name, value) in map {
            if value.is_null() {
                continue;
            }
            match name.as_str() {
                "instanceType" => input.instance_type = instance_type(value)?,
                "sleepAfter" => input.sleep_after = Some(SleepAfter::from_json(value)?),
                "keepAlive" => {
                    let flag = value.as_bool();
                    input.keep_alive =
                        Some(flag.ok_or_else(|| invalid("keepAlive is not a boolean"))?);
                }
                "env" => input.env = Some(patch_from_json(value)?),
                other => {
                    let known = "instanceType, sleepAfter, keepAlive and env";
                    return Err(invalid(&format!(
                        "unknown create option {other:?}: use {known}"
                    )));
                }
            }
        }
        Ok(input)
    }
}

fn instance_type(value: &Value) -> Result<InstanceType, ApiError> {
    match value {
        Value::String(text) => text.parse(),
        other => other.to_string().parse(),
    }
}

fn invalid(message: &str) -> ApiError {
    ApiError::new(ErrorCode::ValidationFailed, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn each_bad_member_has_its_own_code() {
        for (given, code) in [
            (
                json!({"instanceType": "huge"}),
                ErrorCode::InvalidInstanceType,
            ),
            (json!({"instanceType": 4}), ErrorCode::InvalidInstanceType),
            (json!({"sleepAfter": "1d"}), ErrorCode::InvalidSleepAfter),
            (json!({"env": {"A=": ""}}), ErrorCode::InvalidEnv),
            (json!({"keepAlive": "yes"}), ErrorCode::ValidationFailed),
            (json!({"instancetype": "lite"}), ErrorCode::ValidationFailed),
            (json!(["lite"]), ErrorCode::ValidationFailed),
        ] {
            assert_eq!(
                CreateInput::from_json(&given).unwrap_err().code,
                code,
                "{given}"
            );
        }
    }

    #[test]
    fn defaults_fill_in() {
        let input = CreateInput::from_json(&json!({"sleepAfter": null})).unwrap();
        assert_eq!(input, CreateInput::default());
        assert_eq!(input.instance_type, InstanceType::Basic);
    }
}
