//! Checks of this repository that no ready-made tool makes: `cargo xtask tidy`.
#![forbid(unsafe_code)]

mod tidy;

use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy\n";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let outcome = match (arguments.next().as_deref(), arguments.next()) {
        (Some("tidy"), None) => tidy::run(),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(summary) => {
            let _ = writeln!(std::io::stdout(), "{summary}");
            ExitCode::SUCCESS
        }
        Err(report) => {
            let _ = write!(std::io::stderr(), "{report}");
            ExitCode::FAILURE
        }
    }
}
