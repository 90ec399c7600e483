//! A command whose bytes and end are handed over as they come.

use super::launch::{Commands, Running};
use super::output::Output;
use super::request::Request;
use super::supervise::{Ended, supervise, survived};
use crate::managers::children::Tree;
use capnweb::{ErrorValue, ReadableStream, StreamWriter};
use hutch_protocol::{ApiError, ErrorCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

/// What may wait in one output stream, in bytes, before the command is held up.
const WINDOW: usize = 256 * 1024;
/// How long everything may take to end by itself after a polite kill.
const KILL_GRACE: Duration = Duration::from_secs(5);

type Outcome = Option<Result<Ended, ApiError>>;

/// A spawned command: its output as exact byte streams, and its end.
#[derive(Debug)]
pub struct Spawned {
    /// The process id.
    pub pid: i32,
    /// Standard output. Cancelling it closes our end of the pipe.
    pub stdout: ReadableStream,
    /// Standard error, likewise.
    pub stderr: ReadableStream,
    /// How it ends.
    pub exit: SpawnExit,
}

/// The end of a spawned command, and its life: dropping this ends the command with all that
/// it started. The streams cannot stand for it, since over the wire a reader who has gone
/// shows only at the next write.
#[derive(Debug)]
pub struct SpawnExit {
    outcome: watch::Receiver<Outcome>,
    tree: Arc<Tree>,
    _life: DropGuard,
}

impl SpawnExit {
    /// Waits for the command's own end.
    ///
    /// # Errors
    /// As [`supervise`].
    pub async fn wait(&self) -> Result<Ended, ApiError> {
        let mut outcome = self.outcome.clone();
        match outcome.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(result)) => result.clone(),
            _ => Err(ApiError::interrupted(
                "spawn",
                "the command was ended",
                true,
            )),
        }
    }

    /// Sends a signal to everything that the command started. TERM and KILL also see to it
    /// that nothing is left, before this returns.
    ///
    /// # Errors
    /// `PROCESS_ERROR` when the processes cannot be listed, and as [`supervise`].
    pub async fn kill(&self, signal: i32) -> Result<(), ApiError> {
        if matches!(signal, libc::SIGTERM | libc::SIGKILL) {
            return self
                .tree
                .end(signal, KILL_GRACE)
                .await
                .map_err(|error| survived(&error));
        }
        self.tree.signal(signal).await.map_err(|error| {
            ApiError::new(
                ErrorCode::ProcessError,
                format!("the command cannot be signalled: {error}"),
            )
        })
    }
}

impl Commands {
    /// Starts a command and hands over its streams.
    ///
    /// # Errors
    /// As [`Commands::start`].
    pub async fn spawn(&self, request: Request) -> Result<Spawned, ApiError> {
        let Running {
            mut child,
            stdout,
            stderr,
            deadline,
            ended,
            feeder,
            slot,
        } = self.start(request).await?;
        let abandoned = CancellationToken::new();
        let life = abandoned.clone().drop_guard();
        let (publish, outcome) = watch::channel(None);
        let (pid, tree) = (child.pid(), child.tree());
        let out = stream(stdout, self.sinks());
        let err = stream(stderr, self.sinks());
        // Ends with the command, or when its owner has dropped it.
        tokio::spawn(async move {
            let result = tokio::select! {
                result = supervise(&mut child, deadline) => result,
                () = abandoned.cancelled() => return,
            };
            if result.is_ok() {
                child.release();
            }
            drop((feeder, slot));
            ended.send_replace(true);
            publish.send_replace(Some(result));
        });
        let exit = SpawnExit {
            outcome,
            tree,
            _life: life,
        };
        Ok(Spawned {
            pid,
            stdout: out,
            stderr: err,
            exit,
        })
    }
}

fn stream(output: Output, sinks: &Arc<Semaphore>) -> ReadableStream {
    let (writer, stream) = ReadableStream::channel(WINDOW);
    let sinks = Arc::clone(sinks);
    // Ends with the output, or when its reader is gone.
    tokio::spawn(async move {
        if let Ok(output) = copy(output, writer).await {
            output.leave(&sinks);
        }
    });
    stream
}

/// Copies to the end. When the reader is gone the pipe is closed instead, and the
/// command finds out by SIGPIPE.
async fn copy(mut output: Output, writer: StreamWriter) -> Result<Output, ErrorValue> {
    loop {
        let piece = tokio::select! {
            piece = output.next() => piece,
            gone = writer.closed() => return Err(gone.0),
        };
        match piece {
            Some(piece) => writer.write(piece).await.map_err(|gone| gone.0)?,
            None => {
                writer.close();
                return Ok(output);
            }
        }
    }
}
