//! What a caller may ask for, checked.

use bytes::Bytes;
use capnweb::ReadableStream;
use hutch_protocol::limits::{ARGUMENT_CONTENT_MAX, ENV_COUNT_MAX, TIMEOUT_MS_MAX};
use hutch_protocol::{ApiError, EnvPatch, ErrorCode, env};
use std::time::Duration;

/// The longest single argument or variable that the kernel passes on, its NUL included.
pub(super) const ARGUMENT_MAX: usize = 128 * 1024;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A command line for `bash -c`.
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// What the program reads.
#[derive(Debug, Default)]
pub enum Stdin {
    /// End of file at once.
    #[default]
    Empty,
    /// These bytes, then end of file.
    Bytes(Bytes),
    /// What a stream brings.
    Stream(ReadableStream),
}

/// One command to run.
#[derive(Debug)]
pub struct Request {
    /// What to run.
    pub program: Program,
    /// The working directory, relative to the workspace; the workspace when absent.
    pub cwd: Option<String>,
    /// Variables of this call: a value sets, `None` unsets.
    pub env: EnvPatch,
    /// After this long everything it started is ended.
    pub timeout: Option<Duration>,
    /// What it reads.
    pub stdin: Stdin,
}

impl Request {
    /// A command line with nothing else said.
    pub fn shell(command: impl Into<String>) -> Self {
        Self {
            program: Program::Shell(command.into()),
            cwd: None,
            env: EnvPatch::new(),
            timeout: None,
            stdin: Stdin::Empty,
        }
    }

    /// The command as messages and records show it.
    #[must_use]
    pub fn command(&self) -> String {
        match &self.program {
            Program::Shell(text) => text.clone(),
            Program::Argv(argv) => argv.join(" "),
        }
    }

    /// Checks everything that can be known before a process exists.
    ///
    /// # Errors
    /// `INVALID_COMMAND` or `VALIDATION_FAILED`, naming the part and the reason.
    pub fn check(&self) -> Result<(), ApiError> {
        match &self.program {
            Program::Shell(text) if text.contains('\0') => {
                return Err(invalid_command("the command holds a NUL"));
            }
            Program::Shell(text) if text.len() > ARGUMENT_CONTENT_MAX => {
                return Err(too_long("command", text.len(), ARGUMENT_CONTENT_MAX));
            }
            Program::Argv(argv) if argv.first().is_none_or(String::is_empty) => {
                return Err(invalid_command(
                    "argv is empty; its first element is the program",
                ));
            }
            Program::Argv(argv) => {
                for argument in argv {
                    if argument.contains('\0') {
                        return Err(invalid_command("an element of argv holds a NUL"));
                    }
                    if argument.len() >= ARGUMENT_MAX {
                        return Err(too_long("argv element", argument.len(), ARGUMENT_MAX - 1));
                    }
                }
            }
            Program::Shell(_) => {}
        }
        if let Some(cwd) = &self.cwd
            && (cwd.is_empty() || cwd.contains('\0') || cwd.len() > 4096)
        {
            let head: String = cwd.chars().take(200).collect();
            return Err(invalid(
                "cwd",
                format!("cwd {head:?} is not a path: it must have 1 to 4096 bytes and no NUL"),
            ));
        }
        check_env(&self.env)
    }
}

/// Reads a time limit in milliseconds.
///
/// # Errors
/// `VALIDATION_FAILED` for anything but 1 to 2147483647.
pub fn timeout(milliseconds: f64) -> Result<Duration, ApiError> {
    #[allow(clippy::cast_precision_loss, reason = "the limit has 31 bits")]
    let most = TIMEOUT_MS_MAX as f64;
    if !(1.0..=most).contains(&milliseconds) {
        return Err(invalid(
            "timeout",
            format!("timeout must be between 1 and {TIMEOUT_MS_MAX}ms: {milliseconds}"),
        ));
    }
    Ok(Duration::from_secs_f64(milliseconds / 1000.0))
}

fn check_env(patch: &EnvPatch) -> Result<(), ApiError> {
    if patch.len() > ENV_COUNT_MAX {
        return Err(invalid(
            "env",
            format!("env has more than {ENV_COUNT_MAX} variables"),
        ));
    }
    for (name, value) in patch {
        env::check_name(name).map_err(|error| invalid("env", error.message))?;
        let value = value.as_deref().unwrap_or_default();
        if value.contains('\0') {
            return Err(invalid(
                "env",
                format!("env variable {name:?}: the value holds a NUL"),
            ));
        }
        if name.len() + value.len() + 2 > ARGUMENT_MAX {
            return Err(invalid(
                "env",
                format!("env variable {name:?}: name and value have more than 128 KiB"),
            ));
        }
    }
    Ok(())
}

fn invalid_command(why: &str) -> ApiError {
    ApiError::new(ErrorCode::InvalidCommand, format!("Invalid command: {why}"))
}

fn too_long(field: &str, length: usize, most: usize) -> ApiError {
    invalid(
        field,
        format!(
            "the {field} has {length} bytes, more than {most}; write it to a file and run that"
        ),
    )
}

/// A `VALIDATION_FAILED` about one field.
pub fn invalid(field: &str, message: impl Into<String>) -> ApiError {
    let message = message.into();
    let problem = serde_json::json!([{ "field": field, "message": message, "code": "INVALID" }]);
    ApiError::new(ErrorCode::ValidationFailed, message).with("validationErrors", problem)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn time_limits_outside_the_range_are_refused_by_name() {
        assert_eq!(timeout(1.0).unwrap(), Duration::from_millis(1));
        assert!(timeout(2_147_483_647.0).is_ok());
        for bad in [0.0, -1.0, 0.5, 2_147_483_648.0, f64::NAN, f64::INFINITY] {
            let error = timeout(bad).unwrap_err();
            assert_eq!(error.code, ErrorCode::ValidationFailed);
            assert!(error.message.contains("between 1 and 2147483647ms"));
        }
    }

    #[test]
    fn names_with_equals_or_nul_are_refused_and_odd_values_are_not() {
        let mut request = Request::shell("true");
        request.env = [
            ("V".into(), Some("a=b\n`id`\u{1}".into())),
            ("E".into(), Some(String::new())),
        ]
        .into();
        assert!(request.check().is_ok());
        for name in ["A=B", "A\0", ""] {
            request.env = [(name.into(), Some("x".into()))].into();
            assert_eq!(
                request.check().unwrap_err().code,
                ErrorCode::ValidationFailed
            );
        }
    }
}
