//! One file per command; this one chooses.

pub mod bench;
pub mod completions;
pub mod cp;
pub mod doctor;
pub mod exec;
pub mod itx;
pub mod key;
pub mod man;
pub mod project;
pub mod sandbox;
pub mod serve;
pub mod spawner;
pub mod stream;

use crate::{
    args::{Cli, Command},
    failure::{EXEC_FAILED, FAILED, Failure, USAGE},
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
            ExitCode::from(match failure.exit {
                // A command's own codes must stay distinguishable from ours.
                FAILED | USAGE if own_codes => EXEC_FAILED,
                code => code,
            })
        }
    }
}

fn dispatch(cli: Cli) -> Result<u8, Failure> {
    // These two need neither settings nor a server.
    match &cli.command {
        Command::Completions(args) => return completions::run(args, cli.global.json),
        Command::Man(args) => return man::run(args, cli.global.json),
        _ => {}
    }
    let settings = Settings::load(&cli.global)?;
    // Before there are threads, which inherit it. Without it calls take longer
    // beside a busy sandbox, and nothing else.
    let _ = hutch_drivers::native::shorten_slice();
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
            Command::Cp(args) => cp::run(args, &settings).await,
            Command::Stream(args) => stream::run(args, &settings).await,
            Command::Key(args) => key::run(args, &settings).await,
            Command::Completions(_) | Command::Man(_) => Ok(0),
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
