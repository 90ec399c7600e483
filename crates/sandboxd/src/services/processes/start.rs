//! Starting a background process and keeping its output.

use super::Processes;
use crate::managers::process_table::{Record, Source, TableError};
use crate::services::commands::{Output, Request, Running, invalid};
use hutch_protocol::{ApiError, ErrorCode, Timestamp};
use std::sync::Arc;

/// A process to start.
#[derive(Debug)]
pub struct NewProcess {
    /// What to run.
    pub request: Request,
    /// The id that calls will name it by; one is made up when absent.
    pub id: Option<String>,
    /// Whether it keeps the sandbox awake while it runs.
    pub hold_awake: bool,
}

impl Processes {
    /// Starts a process that outlives its caller.
    ///
    /// # Errors
    /// As for commands; `VALIDATION_FAILED` for a bad id, `RESOURCE_BUSY` for one in use or when
    /// too many run.
    pub async fn start(&self, new: NewProcess) -> Result<Arc<Record>, ApiError> {
        let id = match new.id {
            Some(id) => checked(id)?,
            None => made_up(),
        };
        self.table
            .admits(&id)
            .map_err(|error| refused(error, &id))?;
        let command = new.request.command();
        let late = new
            .request
            .timeout
            .map(|timeout| format!("Command timed out after {}ms\n", timeout.as_millis()));
        let running = self.commands.start(new.request).await?;
        let (pid, tree) = (running.pid(), running.tree());
        let record = Arc::new(Record::new(id, pid, command, new.hold_awake, tree));
        self.table
            .add(Arc::clone(&record))
            .map_err(|error| refused(error, &record.id))?;
        let keeper = keep(
            running,
            Arc::clone(&record),
            Arc::clone(self.commands.sinks()),
            late,
        );
        // Ends with the process.
        tokio::spawn(keeper);
        Ok(record)
    }
}

async fn keep(
    running: Running,
    record: Arc<Record>,
    sinks: Arc<tokio::sync::Semaphore>,
    late: Option<String>,
) {
    let (result, (), ()) = running
        .finish(
            &sinks,
            |output| store(output, Source::Stdout, &record),
            |output| store(output, Source::Stderr, &record),
        )
        .await;
    match result {
        Ok(result) => {
            if let Some(line) = late.filter(|_| result.timed_out) {
                record.wrote(Source::Stderr, line.as_bytes());
            }
            record.end(Some(result.code()));
        }
        Err(error) => {
            tracing::warn!(%error, id = record.id, "a process could not be ended");
            record.end(None);
        }
    }
}

async fn store(mut output: Output, source: Source, record: &Record) -> (Output, ()) {
    while let Some(piece) = output.next().await {
        record.wrote(source, &piece);
    }
    (output, ())
}

fn checked(id: String) -> Result<String, ApiError> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    if (1..=128).contains(&id.len()) && id.chars().all(good) {
        return Ok(id);
    }
    Err(invalid(
        "processId",
        "processId must have 1 to 128 characters of a-z, A-Z, 0-9 and . _ - :",
    ))
}

fn made_up() -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let random = uuid::Uuid::new_v4();
    let tail = random.as_bytes().iter().take(6);
    let tail: String = tail
        .map(|byte| char::from(DIGITS[usize::from(*byte) % 36]))
        .collect();
    format!("proc_{}_{tail}", Timestamp::now().millis())
}

fn refused(error: TableError, id: &str) -> ApiError {
    let way_out = match error {
        TableError::InUse => "kill it or choose another id",
        TableError::Full => "kill some first",
    };
    ApiError::new(
        ErrorCode::ResourceBusy,
        format!("Cannot start process {id}: {error}; {way_out}"),
    )
    .with("processId", id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ids_are_names_and_never_paths() {
        assert!(checked("web-1.a:b_c".into()).is_ok());
        for bad in ["", "../x", "a/b", "a b", "ü", &"x".repeat(129)] {
            assert_eq!(
                checked(bad.into()).unwrap_err().code,
                ErrorCode::ValidationFailed
            );
        }
        assert!(checked(made_up()).is_ok());
    }
}
