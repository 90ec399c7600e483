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
mod signals;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words
        .next()
        .is_some_and(|word| word == commands::spawner::NAME)
    {
        return commands::spawner::run(words);
    }
    match args::Cli::try_parse() {
        Ok(cli) => commands::run(cli),
        Err(error) => args::usage(&error),
    }
}
