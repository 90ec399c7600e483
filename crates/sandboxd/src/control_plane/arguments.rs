//! Arguments of calls, read with typed refusals.

use crate::services::commands::{invalid, timeout};
use capnweb::{Object, Value};
use hutch_protocol::{ApiError, EnvPatch};
use std::time::Duration;

/// The session id that stands for none.
const NO_SESSION: &str = "__DISABLE_SESSION__";

/// The positional arguments of one call.
pub(super) struct Arguments(std::vec::IntoIter<Value>);

impl Arguments {
    pub(super) fn new(arguments: Vec<Value>) -> Self {
        Self(arguments.into_iter())
    }

    /// The next argument; `undefined` past the last.
    pub(super) fn value(&mut self) -> Value {
        self.0.next().unwrap_or_default()
    }

    /// The next argument, which must be text.
    pub(super) fn text(&mut self, name: &str) -> Result<String, ApiError> {
        match self.value() {
            Value::String(text) => Ok(text),
            other => Err(wrong(name, "a string", &other)),
        }
    }

    /// The next argument, which must be text if it is there.
    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        optional_text(name, self.value())
    }

    /// The next argument, an object of options if it is there.
    pub(super) fn options(&mut self) -> Result<Options, ApiError> {
        match self.value() {
            Value::Undefined | Value::Null => Ok(Options(Object::new())),
            Value::Object(object) => Ok(Options(object)),
            other => Err(wrong("options", "an object", &other)),
        }
    }

    /// The next argument, a session id that must not name a session.
    pub(super) fn no_session(&mut self) -> Result<(), ApiError> {
        no_session(self.optional_text("sessionId")?)
    }
}

/// Options by name. Unknown ones are ignored, as official clients send some of their own.
pub(super) struct Options(Object);

impl From<Object> for Options {
    fn from(object: Object) -> Self {
        Self(object)
    }
}

impl Options {
    pub(super) fn value(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or_default()
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        optional_text(name, self.value(name))
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, ApiError> {
        match self.value(name) {
            Value::Undefined | Value::Null => Ok(None),
            Value::Number(number) => Ok(Some(number)),
            other => Err(wrong(name, "a number", &other)),
        }
    }

    /// A limit in milliseconds.
    pub(super) fn timeout(&mut self, name: &str) -> Result<Option<Duration>, ApiError> {
        self.number(name)?.map(timeout).transpose()
    }

    /// A limit as the official contract has it, where 0 is none.
    pub(super) fn official_timeout(&mut self) -> Result<Option<Duration>, ApiError> {
        match self.number("timeoutMs")? {
            None | Some(0.0) => Ok(None),
            Some(milliseconds) => timeout(milliseconds).map(Some),
        }
    }

    /// The name of an encoding, one of `known`; the first of them when there is none.
    pub(super) fn encoding<T: Copy>(
        &mut self,
        known: &[(&str, T)],
        none: T,
    ) -> Result<T, ApiError> {
        let Some(name) = self.text("encoding")? else {
            return Ok(none);
        };
        let found = known.iter().find(|(word, _)| *word == name);
        found.map(|(_, encoding)| *encoding).ok_or_else(|| {
            let name: String = name.chars().take(40).collect();
            let known: Vec<_> = known.iter().map(|(word, _)| *word).collect();
            let known = known.join(", ");
            invalid(
                "encoding",
                format!("unknown encoding {name:?}; use one of {known}"),
            )
        })
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<bool, ApiError> {
        match self.value(name) {
            Value::Undefined | Value::Null => Ok(false),
            Value::Bool(flag) => Ok(flag),
            other => Err(wrong(name, "a boolean", &other)),
        }
    }

    pub(super) fn env(&mut self) -> Result<EnvPatch, ApiError> {
        env(self.value("env"))
    }

    pub(super) fn no_session(&mut self) -> Result<(), ApiError> {
        no_session(self.text("sessionId")?)
    }
}

/// Reads a map of variables: text sets, `null` unsets, `undefined` says nothing.
pub(super) fn env(value: Value) -> Result<EnvPatch, ApiError> {
    let object = match value {
        Value::Undefined | Value::Null => return Ok(EnvPatch::new()),
        Value::Object(object) => object,
        other => return Err(wrong("env", "an object of strings", &other)),
    };
    let mut patch = EnvPatch::new();
    for (name, value) in object {
        match value {
            Value::Undefined => {}
            Value::Null => drop(patch.insert(name, None)),
            Value::String(text) => drop(patch.insert(name, Some(text))),
            other => return Err(wrong(&format!("env.{name}"), "a string", &other)),
        }
    }
    Ok(patch)
}

fn optional_text(name: &str, value: Value) -> Result<Option<String>, ApiError> {
    match value {
        Value::Undefined | Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(wrong(name, "a string", &other)),
    }
}

fn no_session(session: Option<String>) -> Result<(), ApiError> {
    match session.as_deref() {
        None | Some(NO_SESSION) => Ok(()),
        Some(_) => Err(invalid(
            "sessionId",
            "named shell sessions are not available; leave sessionId out, and each call has a fresh shell",
        )),
    }
}

/// The refusal of an argument of a wrong kind.
pub(super) fn wrong(name: &str, expected: &str, found: &Value) -> ApiError {
    let kind = match found {
        Value::Undefined => "undefined",
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) | Value::BigInt(_) => "a number",
        Value::String(_) | Value::Url(_) => "a string",
        Value::Date(_) => "a date",
        Value::Bytes(_) | Value::TypedArray(_) => "bytes",
        Value::Array(_) => "an array",
        Value::Readable(_) | Value::Writable(_) => "a stream",
        Value::Stub(_) | Value::Promise(_) => "a function or object by reference",
        _ => "an object",
    };
    invalid(name, format!("{name} must be {expected}, not {kind}"))
}
