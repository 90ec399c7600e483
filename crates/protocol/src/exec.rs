//! The shapes of running commands.

use serde::{Deserialize, Serialize};

use crate::{EnvPatch, Timestamp};

/// How a result carries output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputEncoding {
    /// `stdout` and `stderr` as text, U+FFFD for each bad byte.
    #[default]
    #[serde(rename = "utf-8", alias = "utf8")]
    Utf8,
    /// `stdoutBase64` and `stderrBase64`, exact.
    Base64,
}

/// Options of `exec`. All are optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecOptions {
    /// The working directory; default `/workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables of this call alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<EnvPatch>,
    /// The time limit in milliseconds; default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// What the command reads; default end-of-file at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// How output is given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<OutputEncoding>,
    /// A named shell session; absent means a fresh shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The outcome of `exec`. A non-zero exit is an outcome, not an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecResult {
    /// Whether the exit code is 0.
    pub success: bool,
    /// The exit code; 128 + n for death by signal n, 124 for a timeout.
    pub exit_code: i32,
    /// Standard output as text; absent with base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// Standard error as text; absent with base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Standard output, exact; present with base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_base64: Option<String>,
    /// Standard error, exact; present with base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_base64: Option<String>,
    /// Whether output past the limit was dropped.
    #[serde(default)]
    pub stdout_truncated: bool,
    /// Whether output past the limit was dropped.
    #[serde(default)]
    pub stderr_truncated: bool,
    /// Whether the time limit ended it.
    #[serde(default)]
    pub timed_out: bool,
    /// Whether the memory limit ended a process meanwhile; the host's word.
    #[serde(default)]
    pub oom_killed: bool,
    /// The command as given.
    pub command: String,
    /// How long it ran, in milliseconds.
    pub duration: u64,
    /// When it started.
    pub timestamp: Timestamp,
}

/// How a spawned command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitReport {
    /// The exit code; 128 + n for death by signal n, 124 for a timeout.
    pub exit_code: i32,
    /// The signal that ended it, such as 9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether the time limit ended it.
    #[serde(default)]
    pub timed_out: bool,
}
