//! How a command fails: what people and programs read, and the exit code.
//!
//! Errors go to stderr and leave stdout empty: one line `error: …` for people,
//! one object `{"error": {code, message, context, httpStatus}}` under `--json`.

use crate::output::{harmless, style::Style};
use hutch_client::ClientError;
use serde_json::{Value, json};
use std::io::Write;

/// Exit code of wrong usage.
pub const USAGE: u8 = 2;
/// Exit code of every other failure, `exec` apart.
pub const FAILED: u8 = 1;
/// Exit code of `hutch exec` for a failure that is not the command's own.
pub const EXEC_FAILED: u8 = 125;

/// A failed command.
#[derive(Debug)]
pub struct Failure {
    /// A code of design's error list, or one of the command line's own.
    pub code: String,
    /// What happened, to which object, and the way out.
    pub message: String,
    /// Facts for programs; an object.
    pub context: Value,
    /// The status that the HTTP surface would answer with.
    pub http_status: Option<u16>,
    /// What the process exits with.
    pub exit: u8,
    /// Lines below the message, for people alone.
    pub trace: Option<String>,
}

impl Failure {
    /// A failure of the command line's own.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            context: json!({}),
            http_status: None,
            exit: FAILED,
            trace: None,
        }
    }

    /// Wrong usage that clap cannot see.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: USAGE,
            ..Self::new("USAGE", message)
        }
    }

    /// The same failure with another exit code.
    #[must_use]
    pub fn with_exit(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    /// The same failure with facts for programs.
    #[must_use]
    pub fn with_context(self, context: Value) -> Self {
        Self { context, ..self }
    }

    /// The object printed under `--json`.
    pub fn to_json(&self) -> Value {
        json!({"error": {
            "code": self.code,
            "message": self.message,
            "context": self.context,
            "httpStatus": self.http_status,
        }})
    }

    /// Writes the failure to stderr.
    pub fn report(&self, json: bool, style: Style) {
        let text = if json {
            self.to_json().to_string()
        } else {
            let trace = self.trace.iter().map(|trace| format!("\n{trace}"));
            let message = self.message.clone() + &trace.collect::<String>();
            format!("{} {}", style.error("error:"), harmless(&message))
        };
        // A closed stderr leaves the exit code to tell.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            context: error.details(),
            http_status: error.http_status(),
            exit: FAILED,
            trace: None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_cannot_steer_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2J\nb"), "a\u{fffd}[2J\nb");
    }

    #[test]
    fn json_has_the_four_documented_fields() {
        let failure = Failure::new("SANDBOX_NOT_FOUND", "no sandbox").with_context(json!({"a": 1}));
        assert_eq!(
            failure.to_json(),
            json!({"error": {"code": "SANDBOX_NOT_FOUND", "message": "no sandbox", "context": {"a": 1}, "httpStatus": null}})
        );
    }
}
