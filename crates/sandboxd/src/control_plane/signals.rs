//! Signals as callers name them.

use super::arguments::wrong;
use crate::managers::children::signal_number;
use crate::services::commands::invalid;
use capnweb::Value;
use hutch_protocol::ApiError;

/// Reads a signal by name or number; TERM when nothing is said.
pub(super) fn signal(value: &Value) -> Result<i32, ApiError> {
    match value {
        Value::Undefined | Value::Null => Ok(libc::SIGTERM),
        Value::String(name) => signal_number(name).ok_or_else(|| {
            invalid(
                "signal",
                format!("unknown signal {name:?}; use a name such as SIGTERM, or a number"),
            )
        }),
        Value::Number(_) => match value.as_i64().and_then(|number| i32::try_from(number).ok()) {
            Some(number @ 1..=31) => Ok(number),
            _ => Err(invalid("signal", "a signal's number is 1 to 31")),
        },
        other => Err(wrong("signal", "a name or a number", other)),
    }
}
