//! Reading what callers sent.

use capnweb::Value;
use hutch_protocol::{ApiError, ErrorCode};
use serde::de::DeserializeOwned;

/// The argument at a place; `undefined` if it is absent.
pub(super) fn at(args: &[Value], place: usize) -> &Value {
    const ABSENT: &Value = &Value::Undefined;
    args.get(place).unwrap_or(ABSENT)
}

/// A string argument.
pub(super) fn text<'a>(args: &'a [Value], place: usize, what: &str) -> Result<&'a str, ApiError> {
    at(args, place)
        .as_str()
        .ok_or_else(|| invalid(format!("{what} must be a string")))
}

/// An argument as JSON; `undefined` reads as null, and members that are
/// `undefined` as absent.
pub(super) fn json(value: &Value) -> Result<serde_json::Value, ApiError> {
    if value.is_undefined() {
        return Ok(serde_json::Value::Null);
    }
    value.to_json().map_err(|error| invalid(error.to_string()))
}

/// An argument as a type of ours, the default if it is absent or null.
pub(super) fn options<T: DeserializeOwned + Default>(
    args: &[Value],
    place: usize,
    what: &str,
) -> Result<T, ApiError> {
    let value = at(args, place);
    if value.is_nullish() {
        return Ok(T::default());
    }
    value
        .deserialize()
        .map_err(|error| invalid(format!("{what}: {error}")))
}

pub(super) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::ValidationFailed, message)
}
