//! Background processes of the handle. Results are plain values; what a process can do
//! travels along as functions.

use super::handle::process;
use super::waiting;
use crate::control_plane::Services;
use crate::control_plane::answer::{number, object};
use crate::control_plane::arguments::Arguments;
use crate::control_plane::processes::{new_process, summary};
use crate::control_plane::signals::signal;
use crate::services::processes::Processes;
use capnweb::Value;
use hutch_protocol::{ApiError, ErrorCode};
use std::sync::Arc;

/// Calls the process method `name` of the handle; `None` when there is none of that name.
pub(in crate::control_plane) async fn call(
    services: &Services,
    name: &str,
    mut arguments: Arguments,
) -> Option<Result<Value, ApiError>> {
    let processes = &services.processes;
    Some(match name {
        "startProcess" => start(processes, arguments).await,
        "listProcesses" => {
            let all = processes.all();
            let all: Vec<Value> = all
                .iter()
                .map(|record| summary(record, true).into())
                .collect();
            Ok(all.into())
        }
        "getProcess" => get(processes, &mut arguments),
        "killProcess" => kill(processes, &mut arguments).await,
        "killAllProcesses" => processes.kill_all().await.map(number),
        "getProcessLogs" => arguments
            .text("processId")
            .and_then(|id| logs(processes, &id)),
        "streamProcessLogs" => {
            let id = arguments.text("processId");
            id.and_then(|id| processes.follow(&id)).map(Value::from)
        }
        "waitForExit" | "waitForLog" | "waitForPort" => match arguments.text("processId") {
            Ok(id) => waiting::call(processes, name, &id, arguments).await,
            Err(error) => Err(error),
        },
        _ => return None,
    })
}

/// `startProcess(command, {processId?, cwd?, env?, timeout?, holdAwake?}?)`.
async fn start(processes: &Arc<Processes>, mut arguments: Arguments) -> Result<Value, ApiError> {
    let command = arguments.text("command")?;
    let mut options = arguments.options()?;
    let limit = options.timeout("timeout")?;
    let mut new = new_process(command, &mut options)?;
    new.request.timeout = limit;
    let record = processes.start(new).await?;
    Ok(process(processes, &record).into())
}

/// `getProcess(id)`: the process, or `null`.
fn get(processes: &Arc<Processes>, arguments: &mut Arguments) -> Result<Value, ApiError> {
    match processes.get(&arguments.text("processId")?) {
        Ok(record) => Ok(process(processes, &record).into()),
        Err(error) if error.code == ErrorCode::ProcessNotFound => Ok(Value::Null),
        Err(error) => Err(error),
    }
}

/// `killProcess(id, signal?)`.
async fn kill(processes: &Processes, arguments: &mut Arguments) -> Result<Value, ApiError> {
    let id = arguments.text("processId")?;
    let number = signal(&arguments.value())?;
    processes.kill(&id, number).await?;
    Ok(Value::Undefined)
}

/// `{stdout, stderr, processId, stdoutTruncated, stderrTruncated}`.
pub(super) fn logs(processes: &Processes, id: &str) -> Result<Value, ApiError> {
    let logs = processes.logs(id)?;
    Ok(Value::Object(object([
        ("stdout", logs.stdout.content.into()),
        ("stderr", logs.stderr.content.into()),
        ("stdoutTruncated", logs.stdout.truncated.into()),
        ("stderrTruncated", logs.stderr.truncated.into()),
        ("processId", id.into()),
    ])))
}
