//! Why an expression cannot be read.

use super::super::scan::Malformed;
use crate::codes;
use crate::error::ErrorValue;

/// Why an expression cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The peer breaks the protocol: the session ends.
    Fatal(Box<ErrorValue>),
    /// Only what the expression is for fails.
    Refused(Box<ErrorValue>),
}

impl Fault {
    pub(crate) fn into_error(self) -> ErrorValue {
        match self {
            Self::Fatal(error) | Self::Refused(error) => *error,
        }
    }

    pub(crate) fn fatal(message: impl Into<String>) -> Self {
        Self::Fatal(Box::new(
            ErrorValue::type_error(message).with_prop("code", codes::PROTOCOL_ERROR),
        ))
    }

    pub(super) fn complex(message: String) -> Self {
        Self::Refused(Box::new(ErrorValue::coded(
            codes::VALUE_TOO_COMPLEX,
            message,
        )))
    }
}

impl From<Malformed> for Fault {
    fn from(Malformed(at): Malformed) -> Self {
        Self::Fatal(Box::new(
            ErrorValue::new(
                "SyntaxError",
                format!("The message is not JSON at byte {at}."),
            )
            .with_prop("code", codes::PROTOCOL_ERROR),
        ))
    }
}
