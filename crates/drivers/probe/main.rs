//! What the driver's tests run: a spawner, an init for sandboxes and what is
//! tried inside.

use std::io::{self, Write};
use std::process::ExitCode;

mod attempts;
mod escapes;
mod init;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let mode = args.next();
    match mode.as_ref().and_then(|mode| mode.to_str()) {
        Some("spawner") => hutch_drivers::native::spawner_main(args),
        Some("report") => {
            let report = hutch_drivers::NativeDriver::detect();
            say(&report.obstacle().unwrap_or_else(|| "none".into()))
        }
        Some("attempts") => say(&attempts::names().join("\n")),
        Some("attempt") => {
            let name = args.next().unwrap_or_default();
            match attempts::attempt(&name.to_string_lossy()) {
                Some((outside, error)) => say(&format!("{outside} {error}")),
                None => ExitCode::from(2),
            }
        }
        // A sandbox's PID 1 is started without arguments.
        None => init::run(),
        Some(_) => ExitCode::from(2),
    }
}

fn say(text: &str) -> ExitCode {
    match writeln!(io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
