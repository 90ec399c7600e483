//! From answers to types, and from the two ways of failing to one.

use crate::ClientError;
use capnweb::Value;
use serde::de::DeserializeOwned;

/// Reads an answer of `call` as plain data.
pub(crate) fn typed<T: DeserializeOwned>(call: &str, value: &Value) -> Result<T, ClientError> {
    value.deserialize().map_err(|error| ClientError::Shape {
        call: call.to_owned(),
        reason: error.to_string(),
    })
}

/// Reads an answer of `call` as JSON.
pub(crate) fn json(call: &str, value: &Value) -> Result<serde_json::Value, ClientError> {
    value.to_json().map_err(|error| ClientError::Shape {
        call: call.to_owned(),
        reason: error.to_string(),
    })
}
