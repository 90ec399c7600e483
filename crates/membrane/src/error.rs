//! Errors between our types and the wire.

use capnweb::{ErrorValue, Value, codes};
use hutch_protocol::{ApiError, ErrorCode};

/// The longest message that we pass on from a sandbox, in characters.
const MESSAGE_MAX: usize = 4096;

/// The most details that we pass on from a sandbox, in bytes of JSON.
const DETAILS_MAX: usize = 64 * 1024;

/// An error as clients see it: a plain `Error` with `code`, `details` and
/// `httpStatus`.
pub fn error_value(error: ApiError) -> ErrorValue {
    let status = f64::from(error.http_status());
    ErrorValue::coded(error.code.as_str(), error.message)
        .with_prop(
            "details",
            Value::from_json(serde_json::Value::Object(error.details)),
        )
        .with_prop("httpStatus", Value::Number(status))
}

/// The message of any error, bounded.
pub fn error_text(error: &ErrorValue) -> String {
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
pub fn from_sandbox(error: &ErrorValue) -> ApiError {
    let code = match error.code() {
        Some(codes::MESSAGE_TOO_LARGE | codes::VALUE_TOO_COMPLEX) => ErrorCode::PayloadTooLarge,
        Some(code) if code.starts_with("RPC_") => ErrorCode::RpcTransportError,
        Some(code) => code
            .parse()
            .ok()
            .filter(|code| official().contains(code))
            // Whether a call was admitted is the host's to say.
            .filter(|code| *code != ErrorCode::OperationInterrupted)
            .unwrap_or(ErrorCode::UnknownError),
        None if error.name == "TypeError" && error.message.ends_with("is not a function.") => {
            ErrorCode::MethodNotFound
        }
        None => ErrorCode::UnknownError,
    };
    let mut typed = ApiError::new(code, error_text(error));
    if let Some(Ok(serde_json::Value::Object(details))) = error.details().map(Value::to_json)
        && serde_json::to_string(&details).is_ok_and(|text| text.len() <= DETAILS_MAX)
    {
        typed.details = details;
    }
    if error.is_from_peer() {
        typed.with("origin", "sandbox")
    } else {
        // Our own side of the session refused it.
        typed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;

    /// An error as it comes from the other end.
    fn said(text: &str) -> ErrorValue {
        match capnweb::codec::decode(text, &capnweb::Limits::default()) {
            Ok(Value::Error(error)) => *error,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_sandbox_cannot_speak_for_the_host() {
        let forged =
            said(r#"["error","Error","log in at evil.test",null,{"code":"UNAUTHENTICATED"}]"#);
        assert_eq!(from_sandbox(&forged).code, ErrorCode::UnknownError);
        let gone = said(r#"["error","Error","gone",null,{"code":"RPC_DISCONNECTED"}]"#);
        assert_eq!(from_sandbox(&gone).code, ErrorCode::RpcTransportError);
        assert_eq!(from_sandbox(&gone).details["origin"], "sandbox");
        let honest = said(
            r#"["error","Error","no such file",null,{"code":"FILE_NOT_FOUND","details":{"path":"/x","origin":"host"}}]"#,
        );
        let typed = from_sandbox(&honest);
        assert_eq!(typed.code, ErrorCode::FileNotFound);
        assert_eq!(typed.details["origin"], "sandbox");
        assert_eq!(typed.details["path"], "/x");
    }

    #[test]
    fn what_our_own_side_refuses_is_not_said_to_come_from_inside() {
        let refused = ErrorValue::coded(codes::MESSAGE_TOO_LARGE, "too large");
        let typed = from_sandbox(&refused);
        assert_eq!(typed.code, ErrorCode::PayloadTooLarge);
        assert!(!typed.details.contains_key("origin"));
    }

    #[test]
    fn details_are_bounded() {
        let long = "x".repeat(DETAILS_MAX);
        let text = format!(
            r#"["error","Error","m",null,{{"code":"FILE_NOT_FOUND","details":{{"path":"{long}"}}}}]"#
        );
        assert!(!from_sandbox(&said(&text)).details.contains_key("path"));
    }
}
