//! Waiting for a command, no longer than it may take.

use crate::managers::children::{Child, Exit, StillRunning};
use hutch_protocol::{ApiError, ErrorCode};
use std::time::Duration;
use tokio::time::Instant;

/// How long everything may take to end by itself when the time is up.
const TIMEOUT_GRACE: Duration = Duration::from_millis(500);
/// The exit code of a command whose time was up.
const TIMED_OUT: i32 = 124;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The process's own end.
    pub exit: Exit,
    /// Whether the time limit ended it.
    pub timed_out: bool,
}

impl Ended {
    /// The exit code as results carry it.
    #[must_use]
    pub fn code(self) -> i32 {
        if self.timed_out {
            TIMED_OUT
        } else {
            self.exit.shell_code()
        }
    }
}

/// Waits for the child; at `deadline` ends everything it started.
///
/// # Errors
/// `COMMAND_EXECUTION_ERROR` when something outlived its own killing.
pub async fn supervise(child: &mut Child, deadline: Option<Instant>) -> Result<Ended, ApiError> {
    let exit = match deadline {
        None => child.wait().await,
        Some(deadline) => match tokio::time::timeout_at(deadline, child.wait()).await {
            Ok(exit) => exit,
            Err(_) => {
                child
                    .tree()
                    .end(libc::SIGTERM, TIMEOUT_GRACE)
                    .await
                    .map_err(|e| survived(&e))?;
                return Ok(Ended {
                    exit: child.wait().await,
                    timed_out: true,
                });
            }
        },
    };
    Ok(Ended {
        exit,
        timed_out: false,
    })
}

/// The error about processes that cannot be killed.
pub(crate) fn survived(error: &StillRunning) -> ApiError {
    ApiError::new(
        ErrorCode::CommandExecutionError,
        format!("{error}; stop the sandbox to be rid of them"),
    )
    .with("pids", error.pids.clone())
}
