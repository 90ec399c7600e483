//! The `sandboxd` binary: PID 1 of every sandbox.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match sandboxd::boot::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "sandboxd: {error}");
            ExitCode::FAILURE
        }
    }
}
