//! Running a command to its end and keeping its output.

use super::capture::{Budget, Capture, Captured};
use super::launch::Commands;
use super::output::Output;
use super::request::Request;
use super::supervise::Ended;
use hutch_protocol::exec::OutputEncoding;
use hutch_protocol::limits::RESULT_OUTPUT_MAX;
use hutch_protocol::{ApiError, Timestamp};
use std::time::{Duration, Instant};

/// A command that has run.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub ended: Ended,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// When it started.
    pub started: Timestamp,
    /// How long it ran.
    pub duration: Duration,
}

impl Commands {
    /// Runs a command until it has ended itself; children that it leaves behind live on.
    /// Dropping the future ends everything that it started.
    ///
    /// # Errors
    /// As [`Commands::start`], and when its time was up and it could not be killed.
    pub async fn exec(
        &self,
        request: Request,
        encoding: OutputEncoding,
    ) -> Result<Finished, ApiError> {
        let (started, clock) = (Timestamp::now(), Instant::now());
        let timeout = request.timeout;
        let running = self.start(request).await?;
        let budget = &Budget::pooled(RESULT_OUTPUT_MAX, self.results());
        let keep = |output| collect(output, encoding, budget);
        let (ended, out, mut err) = running.finish(self.sinks(), keep, keep).await;
        let ended = ended?;
        if let Some(timeout) = timeout.filter(|_| ended.timed_out) {
            err.note(&format!(
                "Command timed out after {}ms\n",
                timeout.as_millis()
            ));
        }
        Ok(Finished {
            ended,
            stdout: out.finish(budget),
            stderr: err.finish(budget),
            started,
            duration: clock.elapsed(),
        })
    }
}

/// Keeps the head of a stream; reads on past the budget, so that the command is not held up.
async fn collect(
    mut output: Output,
    encoding: OutputEncoding,
    budget: &Budget,
) -> (Output, Capture) {
    let mut capture = Capture::new(encoding);
    while let Some(piece) = output.next().await {
        capture.push(&piece, budget);
    }
    (output, capture)
}
