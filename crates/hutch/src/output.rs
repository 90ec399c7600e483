//! What people and programs read on stdout.

pub mod duration;
pub mod follow;
pub mod style;
pub mod table;
pub mod wait;

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
    line(&document(value)?)
}

/// One JSON document on one line.
pub fn document<T: Serialize + ?Sized>(value: &T) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))
}

/// Writes a text that ends with its own newline; under `--json` as `{"text"}`.
pub fn page(text: &[u8], as_json: bool) -> Result<(), Failure> {
    if as_json {
        return json(&serde_json::json!({"text": String::from_utf8_lossy(text)}));
    }
    let mut out = std::io::stdout().lock();
    written(out.write_all(text).and_then(|()| out.flush()))
}

/// Text of many lines that cannot steer the terminal: it may hold what a sandbox
/// said.
pub fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
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
