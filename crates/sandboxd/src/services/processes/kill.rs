//! Ending processes.

use super::Processes;
use crate::managers::process_table::Record;
use crate::services::commands::survived;
use futures_util::future::{join, join_all};
use hutch_protocol::{ApiError, ErrorCode};
use std::sync::Arc;
use std::time::Duration;

/// How long a process may take to end by itself after a polite kill.
const GRACE: Duration = Duration::from_secs(5);

impl Processes {
    /// Sends a signal to everything that a process started. TERM and KILL end it: when this
    /// returns nothing of it is left and its record says so.
    ///
    /// # Errors
    /// `PROCESS_NOT_FOUND`; `COMMAND_NOT_FOUND` when it has ended already, as the official server
    /// answers; `COMMAND_EXECUTION_ERROR` when something cannot be killed.
    pub async fn kill(&self, id: &str, signal: i32) -> Result<(), ApiError> {
        let record = self.get(id)?;
        if record.state().over() {
            return Err(ApiError::new(
                ErrorCode::CommandNotFound,
                format!("Process {} has ended already", record.id),
            )
            .with("processId", record.id.clone()));
        }
        if matches!(signal, libc::SIGTERM | libc::SIGKILL) {
            return end(&record, signal).await;
        }
        record.tree.signal(signal).await.map_err(|error| {
            ApiError::new(
                ErrorCode::ProcessError,
                format!("Process {} cannot be signalled: {error}", record.id),
            )
            .with("processId", record.id.clone())
        })
    }

    /// Ends all processes that run, and what finished calls left behind. Returns how many
    /// processes and such calls there were.
    ///
    /// # Errors
    /// As [`Processes::kill`]; the others are ended all the same.
    pub async fn kill_all(&self) -> Result<usize, ApiError> {
        let running = self.running();
        let (ended, left_behind) = join(
            join_all(running.iter().map(|record| end(record, libc::SIGTERM))),
            self.commands.end_left_behind(),
        )
        .await;
        let ended = ended.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(ended.len() + left_behind?)
    }
}

async fn end(record: &Arc<Record>, signal: i32) -> Result<(), ApiError> {
    record.ask_kill();
    record
        .tree
        .end(signal, GRACE)
        .await
        .map_err(|error| survived(&error))?;
    let mut changes = record.changes();
    // All of it is gone, so its end is about to be noted.
    let _ = changes.wait_for(|state| state.over()).await;
    Ok(())
}
