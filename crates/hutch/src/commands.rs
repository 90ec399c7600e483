//! One file per command; this one chooses.

pub mod bench;
pub mod doctor;
pub mod exec;
pub mod itx;
pub mod project;
pub mod sandbox;
pub mod serve;
pub mod spawner;

use crate::{
    args::{Cli, Command},
    failure::{EXEC_FAILED, Failure},
    output::style::Style,
    settings::Settings,
};
use std::process::ExitCode;

/// Runs the command and says how it ended.
pub fn run(cli: Cli) -> ExitCode {
    let json = cli.global.json;
    let own_codes = matches!(cli.command, Command::Exec(_));
    match dispatch(cli) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.report(json, Style::stderr());
            // A command's own codes must stay distinguishable from ours.
            ExitCode::from(if own_codes { EXEC_FAILED } else { failure.exit })
        }
    }
}

fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let settings = Settings::load(&cli.global)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers(&cli.command))
        .enable_all()
        .build()
        .map_err(|error| Failure::new("INTERNAL_ERROR", format!("cannot start: {error}")))?;
    let result = runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => serve::run(args, &settings).await,
            Command::Itx(args) => itx::run(args, &settings).await,
            Command::Project(args) => project::run(args, &settings).await,
            Command::Sandbox(args) => sandbox::run(args, &settings).await,
            Command::Exec(args) => exec::run(args, &settings).await,
            Command::Doctor(args) => doctor::run(args, &settings).await,
            Command::Bench(args) => bench::run(args, &settings).await,
        }
    });
    // A blocked read of a terminal must not hold up the exit.
    runtime.shutdown_background();
    result
}

/// Clients wait for one connection; only the server has work for every core.
fn workers(command: &Command) -> usize {
    match command {
        Command::Serve(_) | Command::Bench(_) => {
            std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
        }
        _ => 1,
    }
}
