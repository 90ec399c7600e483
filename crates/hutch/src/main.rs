//! `hutch`: the command line, the server (`hutch serve`) and the spawner, which
//! is a mode of this same binary.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod connect;
mod failure;
mod itx;
mod output;
mod settings;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return args::usage(&error),
    };
    // The spawner forks, so it has to start before any thread does.
    if let args::Command::Spawner(spawner) = cli.command {
        return commands::spawner::run(&spawner);
    }
    commands::run(cli)
}
