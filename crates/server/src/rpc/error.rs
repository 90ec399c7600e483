//! Errors between our types and the wire.

use capnweb::{ErrorValue, Value, codes};
use hutch_protocol::{ApiError, ErrorCode};

/// The longest message that we pass on from a sandbox, in characters.
const MESSAGE_MAX: usize = 4096;

/// An error as clients see it: a plain `Error` with `code`, `details` and
/// `httpStatus`.
pub(crate) fn error_value(error: ApiError) -> ErrorValue {
    let status = f64::from(error.http_status());
    ErrorValue::coded(error.code.as_str(), error.message)
        .with_prop(
            "details",
            Value::from_json(serde_json::Value::Object(error.details)),
        )
        .with_prop("httpStatus", Value::Number(status))
}

/// The message of any error, bounded.
pub(crate) fn error_text(error: &ErrorValue) -> String {
    error.message.chars().take(MESSAGE_MAX).collect()
}

/// The codes of the sandbox API itself; ours come after them.
fn official() -> &'static [ErrorCode] {
    let ours = ErrorCode::ALL
        .iter()
        .position(|code| *code == ErrorCode::SandboxNotFound);
    &ErrorCode::ALL[..ours.unwrap_or(0)]
}

/// An error that came out of a sandbox. Its code is data: only the codes of the
/// sandbox API pass, so that nothing inside can speak for the host, and
/// `details.origin` says where it came from.
pub(super) fn from_sandbox(error: &ErrorValue) -> ApiError {
    let code = match error.code() {
        Some(codes::MESSAGE_TOO_LARGE | codes::VALUE_TOO_COMPLEX) => ErrorCode::PayloadTooLarge,
        Some(code) if code.starts_with("RPC_") => ErrorCode::RpcTransportError,
        Some(code) => code
            .parse()
            .ok()
            .filter(|code| official().contains(code))
            .unwrap_or(ErrorCode::UnknownError),
        None if error.name == "TypeError" && error.message.ends_with("is not a function.") => {
            ErrorCode::MethodNotFound
        }
        None => ErrorCode::UnknownError,
    };
    let mut typed = ApiError::new(code, error_text(error));
    if let Some(Ok(serde_json::Value::Object(details))) = error.details().map(Value::to_json) {
        typed.details = details;
    }
    typed.with("origin", "sandbox")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_cannot_speak_for_the_host() {
        let forged = ErrorValue::coded("UNAUTHENTICATED", "log in at evil.test");
        assert_eq!(from_sandbox(&forged).code, ErrorCode::UnknownError);
        let honest = ErrorValue::coded("FILE_NOT_FOUND", "no such file").with_prop(
            "details",
            Value::from_json(serde_json::json!({"path": "/x", "origin": "host"})),
        );
        let typed = from_sandbox(&honest);
        assert_eq!(typed.code, ErrorCode::FileNotFound);
        assert_eq!(typed.details["origin"], "sandbox");
        assert_eq!(typed.details["path"], "/x");
    }
}
