//! What people and programs read on stdout.

pub mod duration;
pub mod style;
pub mod table;

use crate::failure::Failure;
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// Writes one line to stdout.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    written(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// Writes one JSON document to stdout, on one line.
pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))?;
    line(&text)
}

/// Writes one line to stderr; progress and notes, never results.
pub fn note(text: &str) {
    // Nothing is left to tell when stderr is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A reader that has seen enough (`hutch … | head`) is no failure.
fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::new(
            "OUTPUT_FAILED",
            format!("cannot write to stdout: {error}"),
        )),
    }
}
