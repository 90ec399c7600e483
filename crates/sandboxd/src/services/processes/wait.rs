//! Waiting for a process to end.

use super::Processes;
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
            Some(limit) => tokio::time::timeout(limit, over).await.map_err(|_| {
                let ms = limit.as_millis();
                ApiError::new(
                    ErrorCode::ProcessReadyTimeout,
                    format!(
                        "Process did not become ready within {ms}ms. Waiting for: process exit"
                    ),
                )
                .with("processId", record.id.clone())
                .with("command", head(&record.command))
                .with("condition", "process exit")
                .with("timeout", u64::try_from(ms).unwrap_or(u64::MAX))
            })?,
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

fn head(command: &str) -> String {
    command.chars().take(200).collect()
}
