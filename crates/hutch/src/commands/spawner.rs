//! `hutch spawner`: the root part that starts sandboxes, run by `hutch serve`.

use clap::Args;
use std::{ffi::OsString, process::ExitCode};

/// Arguments of the spawner, understood by the driver.
#[derive(Debug, Args)]
pub struct SpawnerArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Runs the spawner. No thread may have been started before.
pub fn run(args: &SpawnerArgs) -> ExitCode {
    let _ = &args.args;
    ExitCode::from(crate::failure::FAILED)
}
