//! `hutch spawner`: the root part that starts sandboxes, run by `hutch serve`.

use std::{ffi::OsString, process::ExitCode};

/// The word that selects this mode. It is looked for before all else: its
/// arguments are the driver's, not the command line's.
pub const NAME: &str = "spawner";

/// Runs the spawner. No thread may have been started before, as it forks.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    hutch_drivers::native::spawner_main(args)
}
