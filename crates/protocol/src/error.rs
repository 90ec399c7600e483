//! The one error shape of every surface.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ErrorCode;

/// A typed failure: a code, a message for people and details for programs.
///
/// The message says what happened, to which object, and the way out. `details`
/// is always a JSON object. It holds no secret value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The machine-readable reason.
    pub code: ErrorCode,
    /// One or two sentences for people.
    pub message: String,
    /// What a program may want to know, keyed by name.
    pub details: Map<String, Value>,
}

impl ApiError {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Map::new(),
        }
    }

    /// The same error with one more detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// The HTTP status of the code.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        self.code.http_status()
    }

    /// The shape that the command line prints with `--json`.
    #[must_use]
    pub fn to_cli_json(&self) -> Value {
        json!({ "error": {
            "code": self.code,
            "message": self.message,
            "context": self.details,
            "httpStatus": self.http_status(),
        }})
    }

    /// The shape that HTTP surfaces answer with.
    #[must_use]
    pub fn to_wire(&self) -> ErrorBody {
        ErrorBody {
            code: self.code,
            message: self.message.clone(),
            details: self.details.clone(),
            http_status: self.http_status(),
        }
    }

    /// A call that was cut short. `admitted` says whether it may have run.
    pub fn interrupted(operation: &str, reason: &str, admitted: bool) -> Self {
        let known = if admitted {
            "it may have run"
        } else {
            "it did not run and can be sent again"
        };
        Self::new(
            ErrorCode::OperationInterrupted,
            format!("{operation} was interrupted ({reason}); {known}"),
        )
        .with("operation", operation)
        .with("reason", reason)
        .with("admitted", admitted)
    }
}

/// The JSON body of an error.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// The machine-readable reason.
    pub code: ErrorCode,
    /// One or two sentences for people.
    pub message: String,
    /// What a program may want to know.
    pub details: Map<String, Value>,
    /// The HTTP status of the code.
    pub http_status: u16,
}
