//! How a script ends.

use serde::Deserialize;

/// How a script ended.
#[derive(Debug)]
pub enum Outcome {
    /// It returned.
    Value {
        /// Its value as JSON text.
        json: String,
        /// Calls whose result it never asked for: they end with the connection,
        /// done or not.
        forgotten: usize,
        /// What a promise that nobody caught was rejected with.
        uncaught: Option<String>,
    },
    /// It threw, or could not be run.
    Threw(Box<ScriptError>),
    /// It was stopped from outside.
    Canceled,
}

impl Outcome {
    /// The engine failed.
    pub fn internal<T: Into<String>>(reason: T) -> Self {
        Self::Threw(Box::new(ScriptError::new("InternalError", reason)))
    }
}

/// An error that a script threw.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptError {
    /// Class of the error.
    pub name: String,
    /// What happened.
    pub message: String,
    /// Where in the script.
    pub stack: Option<String>,
    /// The code of a typed error.
    pub code: Option<String>,
    /// The details of a typed error.
    pub details: Option<serde_json::Value>,
    /// The status of a typed error.
    pub http_status: Option<u16>,
}

impl ScriptError {
    /// An error that arose beside the script.
    pub fn new(name: &str, message: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            message: message.into(),
            stack: None,
            code: None,
            details: None,
            http_status: None,
        }
    }

    /// Reads what the prelude's `describe` wrote.
    pub fn from_json(text: &str) -> Self {
        serde_json::from_str(text)
            .unwrap_or_else(|error| Self::new("InternalError", error.to_string()))
    }
}
