//! The spawner: a single-threaded root process that makes sandboxes and
//! outlives the server.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the spawner: `hutch spawner --data-dir D`. `args` are what follows
/// `spawner`. Returns when it holds nothing and no server is connected.
#[must_use]
pub fn spawner_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let _ = args.into_iter().count();
    ExitCode::FAILURE
}
