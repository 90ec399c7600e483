//! Background processes: they outlive the call that started them.

mod follow;
mod kill;
mod listeners;
mod logs;
mod ready;
mod start;
mod wait;

pub use logs::Logs;
pub use ready::{Port, Probe};
pub use start::NewProcess;

use crate::managers::process_table::{ProcessTable, Record};
use crate::services::commands::Commands;
use hutch_protocol::{ApiError, ErrorCode};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Readers that may follow logs at one time.
const FOLLOWERS_MAX: usize = 256;

/// The background processes of one sandbox.
#[derive(Debug)]
pub struct Processes {
    commands: Arc<Commands>,
    table: ProcessTable,
    followers: Arc<Semaphore>,
}

impl Processes {
    /// The service, starting processes by `commands`.
    #[must_use]
    pub fn new(commands: Arc<Commands>) -> Self {
        Self {
            commands,
            table: ProcessTable::default(),
            followers: Arc::new(Semaphore::new(FOLLOWERS_MAX)),
        }
    }

    /// The record of a process.
    ///
    /// # Errors
    /// `PROCESS_NOT_FOUND`.
    pub fn get(&self, id: &str) -> Result<Arc<Record>, ApiError> {
        self.table.get(id).ok_or_else(|| {
            let id: String = id.chars().take(200).collect();
            ApiError::new(
                ErrorCode::ProcessNotFound,
                format!("Process {id} not found"),
            )
            .with("processId", id)
        })
    }

    /// All records, those that run first.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Record>> {
        self.table.all()
    }

    /// Those that run.
    #[must_use]
    pub fn running(&self) -> Vec<Arc<Record>> {
        self.table.running()
    }
}

#[cfg(test)]
mod tests;
