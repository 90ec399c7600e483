//! The `sandbox` object: what a handle offers, served inside.

pub(super) mod commands;
mod handle;
pub(super) mod processes;
mod waiting;

use super::Services;
use super::archives;
use super::arguments::Arguments;
use super::files::{self, Surface};
use capnweb::Value;
use hutch_protocol::ApiError;

/// Calls a method of the handle; `None` when there is none of that name.
pub(super) async fn call(
    services: &Services,
    name: &str,
    arguments: Arguments,
) -> Option<Result<Value, ApiError>> {
    match name {
        "exec" => Some(commands::exec(services, arguments).await),
        "execStream" => Some(commands::exec_stream(services, arguments).await),
        "spawn" => Some(commands::spawn(services, arguments).await),
        "startProcess" | "listProcesses" | "getProcess" | "killProcess" | "killAllProcesses"
        | "getProcessLogs" | "streamProcessLogs" | "waitForExit" | "waitForLog" | "waitForPort" => {
            processes::call(services, name, arguments).await
        }
        "readTar" => Some(archives::read(services, arguments).await),
        "writeTar" => Some(archives::write(services, arguments).await),
        _ => files::call(services, Surface::Handle, name, arguments).await,
    }
}
