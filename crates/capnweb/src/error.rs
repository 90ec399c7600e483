//! Errors as they travel: a name, a message and properties.

use std::fmt;

use crate::object::Object;
use crate::value::Value;

/// An error as JavaScript knows it.
///
/// The name survives the wire only if it is one of the standard ones (`Error`,
/// `TypeError`, `RangeError`, …); receivers read any other as `Error`.
#[derive(Debug)]
pub struct ErrorValue {
    /// The class, such as `Error` or `TypeError`.
    pub name: String,
    /// What happened.
    pub message: String,
    /// The sender's stack, if it chose to tell.
    pub stack: Option<String>,
    /// The error's own properties, such as `code` and `details`.
    pub props: Object,
    source: Source,
}

/// Who made an error. Never sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Source {
    /// This side.
    #[default]
    Here,
    /// The peer, as its answer to one call or as a value.
    Peer,
    /// The end of the session, whoever ended it.
    Ended,
}

impl ErrorValue {
    /// An error without properties.
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            message: message.into(),
            stack: None,
            props: Object::new(),
            source: Source::Here,
        }
    }

    /// Whether the peer made it: whatever it says, and whatever its `code`, is
    /// then the peer's word alone.
    pub fn is_from_peer(&self) -> bool {
        self.source == Source::Peer
    }

    /// Whether the session ended before there was an answer. A peer cannot
    /// forge this by an answer, as it can the `code`.
    pub fn is_end_of_session(&self) -> bool {
        self.source == Source::Ended
    }

    pub(crate) fn said_by_peer(mut self) -> Self {
        self.source = Source::Peer;
        self
    }

    pub(crate) fn ended_session(mut self) -> Self {
        self.source = Source::Ended;
        self
    }

    /// A plain `Error` with a `code`.
    pub fn coded(code: &str, message: impl Into<String>) -> Self {
        Self::new("Error", message).with_prop("code", code)
    }

    /// A `TypeError`.
    pub fn type_error(message: impl Into<String>) -> Self {
        Self::new("TypeError", message)
    }

    /// The same error with one more property.
    #[must_use]
    pub fn with_prop(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.props.insert(key, value);
        self
    }

    /// The `code` property, if it is a string.
    pub fn code(&self) -> Option<&str> {
        self.props.get("code").and_then(Value::as_str)
    }

    pub(crate) fn weight(&self) -> usize {
        self.name.len()
            + self.message.len()
            + self.stack.as_ref().map_or(0, String::len)
            + self.props.weight()
    }

    /// The `details` property.
    pub fn details(&self) -> Option<&Value> {
        self.props.get("details")
    }
}

impl fmt::Display for ErrorValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name == "Error" {
            out.write_str(&self.message)
        } else {
            write!(out, "{}: {}", self.name, self.message)
        }
    }
}

impl std::error::Error for ErrorValue {}

/// Streams among the properties have one owner, so a copy has `undefined` in
/// their place.
impl Clone for ErrorValue {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            message: self.message.clone(),
            stack: self.stack.clone(),
            props: self.props.clone_without_streams(),
            source: self.source,
        }
    }
}
