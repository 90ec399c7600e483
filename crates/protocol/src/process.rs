//! The shapes of background processes.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Where a process is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the official names say it")]
pub enum ProcessStatus {
    Starting,
    Running,
    Completed,
    Failed,
    Killed,
    Error,
}

/// One background process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessInfo {
    /// The id that calls name it by.
    pub id: String,
    /// The process id inside the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The command as given.
    pub command: String,
    /// Its state, from its wait status.
    pub status: ProcessStatus,
    /// When it started.
    pub start_time: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Timestamp>,
    /// Its exit code, once it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}
