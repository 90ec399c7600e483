//! What the driver's tests run: a spawner, an init for sandboxes and what is
//! tried inside.

use std::process::ExitCode;

mod init;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_ref().and_then(|mode| mode.to_str()) {
        Some("spawner") => hutch_drivers::native::spawner_main(args),
        // A sandbox's PID 1 is started without arguments.
        None => init::run(),
        Some(_) => ExitCode::from(2),
    }
}
