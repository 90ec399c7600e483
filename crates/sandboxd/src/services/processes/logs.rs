//! What a process wrote, as one answer.

use super::Processes;
use crate::managers::process_table::{Log, Source};
use crate::services::commands::{Budget, Capture, Captured};
use hutch_protocol::ApiError;
use hutch_protocol::exec::OutputEncoding;
use hutch_protocol::limits::RESULT_OUTPUT_MAX;

/// Both streams of a process, as far as they are kept.
#[derive(Debug, Clone)]
pub struct Logs {
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
}

impl Processes {
    /// What a process has written so far. Of much output the last is kept.
    ///
    /// # Errors
    /// `PROCESS_NOT_FOUND`.
    pub fn logs(&self, id: &str) -> Result<Logs, ApiError> {
        let record = self.get(id)?;
        let budget = Budget::new(RESULT_OUTPUT_MAX);
        Ok(record.with_log(|log| Logs {
            stdout: stream(log, Source::Stdout, &budget),
            stderr: stream(log, Source::Stderr, &budget),
        }))
    }
}

fn stream(log: &Log, source: Source, budget: &Budget) -> Captured {
    let dropped = log.dropped(source) > 0;
    let mut capture = Capture::new(OutputEncoding::Utf8);
    let mut pieces = log.pieces().filter(|piece| piece.source == source);
    if dropped && let Some(first) = pieces.next() {
        capture.push(whole_characters(&first.bytes), budget);
    }
    for piece in pieces {
        capture.push(&piece.bytes, budget);
    }
    let mut captured = capture.finish(budget);
    captured.truncated |= dropped;
    captured
}

/// Without the rest of a character whose start was dropped.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let rest = bytes
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0xc0 == 0x80)
        .count();
    &bytes[rest..]
}
