//! Waiting for a process to end.

use super::Processes;
use crate::managers::process_table::Record;
use hutch_protocol::{ApiError, ErrorCode};
use std::time::Duration;

impl Processes {
    /// Waits for a process's own end and returns its exit code; all that it wrote is in its
    /// log by then.
    ///
    /// # Errors
    /// `PROCESS_NOT_FOUND`; `PROCESS_READY_TIMEOUT` when `limit` passes first; `PROCESS_ERROR`
    /// when its end could not be had.
    pub async fn wait(&self, id: &str, limit: Option<Duration>) -> Result<i32, ApiError> {
        let record = self.get(id)?;
        let mut changes = record.changes();
        let over = changes.wait_for(|state| state.over());
        let state = match limit {
            None => over.await,
            Some(limit) => tokio::time::timeout(limit, over)
                .await
                .map_err(|_| timed_out(&record, "process exit", limit))?,
        };
        state.ok().and_then(|state| state.exit_code).ok_or_else(|| {
            ApiError::new(
                ErrorCode::ProcessError,
                format!("Process {} could not be ended", record.id),
            )
            .with("processId", record.id.clone())
        })
    }
}

/// What one hears who waits for `condition` longer than `limit`.
pub(super) fn timed_out(record: &Record, condition: &str, limit: Duration) -> ApiError {
    let ms = limit.as_millis();
    let message = format!("Process did not become ready within {ms}ms. Waiting for: {condition}");
    about(ErrorCode::ProcessReadyTimeout, message, record, condition)
        .with("timeout", u64::try_from(ms).unwrap_or(u64::MAX))
}

/// What one hears whose process ended before `condition` came true.
pub(super) fn ended_before(record: &Record, condition: &str) -> ApiError {
    let code = record.state().exit_code;
    let how = code.map_or_else(
        || "ended".to_owned(),
        |code| format!("exited with code {code}"),
    );
    let message = format!("Process {how} before becoming ready. Waiting for: {condition}");
    let error = about(
        ErrorCode::ProcessExitedBeforeReady,
        message,
        record,
        condition,
    );
    match code {
        Some(code) => error.with("exitCode", code),
        None => error,
    }
}

fn about(code: ErrorCode, message: String, record: &Record, condition: &str) -> ApiError {
    let command: String = record.command.chars().take(200).collect();
    ApiError::new(code, message)
        .with("processId", record.id.clone())
        .with("command", command)
        .with("condition", condition.to_owned())
}
