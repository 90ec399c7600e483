//! From our results and errors to what travels.

use capnweb::{ErrorValue, Object, Value};
use hutch_protocol::ApiError;

/// The most of a command that its own result repeats.
const ECHO_MAX: usize = 1024 * 1024;

/// An error as every RPC surface carries it: a plain `Error` with `code`, `details` and
/// `httpStatus`.
pub(super) fn error(error: ApiError) -> ErrorValue {
    let status = error.http_status();
    ErrorValue::coded(error.code.as_str(), error.message)
        .with_prop(
            "details",
            Value::from_json(serde_json::Value::Object(error.details)),
        )
        .with_prop("httpStatus", status)
}

/// An object from pairs.
pub(super) fn object<const N: usize>(pairs: [(&str, Value); N]) -> Object {
    pairs.into_iter().collect()
}

/// The command as a result repeats it: its head, when it is huge.
pub(super) fn echo(mut command: String) -> String {
    if command.len() > ECHO_MAX {
        command.truncate(command.floor_char_boundary(ECHO_MAX));
    }
    command
}

/// A count as a number.
pub(super) fn number(count: impl TryInto<u32>) -> Value {
    Value::from(count.try_into().unwrap_or(u32::MAX))
}

/// The time now, as text.
pub(super) fn now() -> Value {
    Value::from(hutch_protocol::Timestamp::now().to_string())
}
