//! What a call can fail with. Every error has a code of design's list, so that
//! callers branch on one thing wherever the failure arose.

use capnweb::{ErrorValue, Value as RpcValue, codes};
use serde_json::{Value, json};

/// A refusal that the server sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ServerError {
    /// Name of the error, such as `Error` or `TypeError`.
    pub name: String,
    /// Code of design's error list; empty when the server sent none.
    pub code: String,
    /// What happened, to which object, and the way out.
    pub message: String,
    /// Facts for programs; an object.
    pub details: Value,
    /// The status that the HTTP surface answers with.
    pub http_status: Option<u16>,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused.
    #[error(transparent)]
    Server(Box<ServerError>),
    /// The connection ended before the answer came.
    #[error("the connection to the server ended: {}; {}", reason.trim_end_matches('.'), outcome(*admitted))]
    Interrupted {
        /// What the transport said.
        reason: String,
        /// Whether the server is known to have taken the operation on; `None`
        /// when that is unknown.
        admitted: Option<bool>,
    },
    /// No connection was made.
    #[error("cannot reach the server at {url}: {reason}; is `hutch serve` running there?")]
    Connect {
        /// The address that was tried.
        url: String,
        /// What the transport said.
        reason: String,
    },
    /// The address cannot be used.
    #[error("{0}")]
    Address(String),
    /// The server answered something of another shape than this client knows.
    #[error(
        "the server's answer to {call} has an unexpected shape: {reason}; are client and server of one version?"
    )]
    Shape {
        /// The call that was answered.
        call: String,
        /// What is wrong with it.
        reason: String,
    },
}

fn outcome(admitted: Option<bool>) -> &'static str {
    match admitted {
        Some(false) => "the operation was not sent: connect again and repeat it",
        _ => "the operation may have happened: look before you repeat it",
    }
}

impl ClientError {
    /// The code: the server's, or that of the transport failure.
    pub fn code(&self) -> &str {
        match self {
            Self::Server(error) if error.code.is_empty() => "INTERNAL_ERROR",
            Self::Server(error) => &error.code,
            Self::Interrupted { .. } => "OPERATION_INTERRUPTED",
            Self::Connect { .. } => "CONNECTION_FAILED",
            Self::Address(_) => "INVALID_URL",
            Self::Shape { .. } => "INVALID_RESPONSE",
        }
    }

    /// Facts for programs; always an object.
    pub fn details(&self) -> Value {
        match self {
            Self::Server(error) => error.details.clone(),
            Self::Interrupted { reason, admitted } => {
                json!({"reason": reason, "admitted": admitted})
            }
            Self::Connect { url, reason } => json!({"url": url, "reason": reason}),
            Self::Address(_) => json!({}),
            Self::Shape { call, reason } => json!({"call": call, "reason": reason}),
        }
    }

    /// The status that the HTTP surface answers with, where one is known.
    pub fn http_status(&self) -> Option<u16> {
        match self {
            Self::Server(error) => error.http_status,
            Self::Interrupted { .. } => Some(409),
            _ => None,
        }
    }
}

impl From<ErrorValue> for ServerError {
    fn from(error: ErrorValue) -> Self {
        let plain = |name: &str| error.props.get(name).and_then(|value| value.to_json().ok());
        let details = match plain("details") {
            Some(details @ Value::Object(_)) => details,
            _ => json!({}),
        };
        let http_status = plain("httpStatus")
            .and_then(|value| value.as_f64())
            .filter(|status| (100.0..600.0).contains(status))
            // In range and whole by HTTP's definition; a fraction is cut off.
            .map(|status| status as u16);
        Self {
            code: error.code().unwrap_or_default().to_owned(),
            details,
            http_status,
            name: error.name,
            message: error.message,
        }
    }
}

impl From<ErrorValue> for ClientError {
    fn from(error: ErrorValue) -> Self {
        if error.code() != Some(codes::DISCONNECTED) {
            return Self::Server(Box::new(ServerError::from(error)));
        }
        let may_have_run = match error.details() {
            Some(RpcValue::Object(details)) => {
                details.get("mayHaveRun").and_then(RpcValue::as_bool)
            }
            _ => None,
        };
        Self::Interrupted {
            reason: error.message,
            // Sent is not yet admitted; not sent is surely not.
            admitted: match may_have_run {
                Some(false) => Some(false),
                _ => None,
            },
        }
    }
}
