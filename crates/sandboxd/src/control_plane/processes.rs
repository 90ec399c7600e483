//! The `processes` domain: the official contract.

use super::Services;
use super::answer::{echo, now, number, object};
use super::arguments::{Arguments, Options};
use crate::managers::process_table::Record;
use crate::services::commands::Request;
use crate::services::processes::NewProcess;
use capnweb::{Object, Value};
use hutch_protocol::ApiError;

/// Calls the method `name` of the domain; `None` when there is none of that name.
pub(super) async fn call(
    services: &Services,
    name: &str,
    arguments: Arguments,
) -> Option<Result<Value, ApiError>> {
    Some(match name {
        "startProcess" => start(services, arguments).await,
        "listProcesses" => Ok(list(services)),
        "getProcess" => get(services, arguments),
        "killProcess" => kill(services, arguments).await,
        "killAllProcesses" => kill_all(services).await,
        "getProcessLogs" => logs(services, arguments),
        "streamProcessLogs" => follow(services, arguments),
        _ => return None,
    })
}

/// `startProcess(command, sessionId, {processId, timeoutMs, env, cwd}?)`.
async fn start(services: &Services, mut arguments: Arguments) -> Result<Value, ApiError> {
    let command = arguments.text("command")?;
    arguments.no_session()?;
    let mut options = arguments.options()?;
    let limit = options.official_timeout()?;
    let mut new = new_process(command, &mut options)?;
    new.request.timeout = limit;
    let record = services.processes.start(new).await?;
    Ok(Value::Object(object([
        ("success", true.into()),
        ("processId", record.id.clone().into()),
        ("pid", record.pid.into()),
        ("command", echo(record.command.clone()).into()),
        ("timestamp", record.started.to_string().into()),
    ])))
}

/// What both surfaces read of a new process.
pub(super) fn new_process(command: String, options: &mut Options) -> Result<NewProcess, ApiError> {
    if command.trim().is_empty() {
        return Err(super::sandbox::commands::empty());
    }
    let mut request = Request::shell(command);
    request.cwd = options.text("cwd")?;
    request.env = options.env()?;
    options.no_session()?;
    Ok(NewProcess {
        request,
        id: options.text("processId")?,
        hold_awake: options.flag("holdAwake")?,
    })
}

fn list(services: &Services) -> Value {
    let processes = services.processes.all();
    let processes: Vec<Value> = processes
        .iter()
        .map(|record| summary(record, false).into())
        .collect();
    Value::Object(object([
        ("success", true.into()),
        ("processes", processes.into()),
        ("timestamp", now()),
    ]))
}

fn get(services: &Services, mut arguments: Arguments) -> Result<Value, ApiError> {
    let record = services.processes.get(&arguments.text("processId")?)?;
    Ok(Value::Object(object([
        ("success", true.into()),
        ("process", summary(&record, false).into()),
        ("timestamp", now()),
    ])))
}

/// `{id, pid, command, status, startTime, endTime?, exitCode?}`.
pub(super) fn summary(record: &Record, with_end: bool) -> Object {
    let info = record.info();
    let status = Value::serialize(&info.status).unwrap_or_default();
    let mut summary = object([
        ("id", info.id.into()),
        ("pid", record.pid.into()),
        ("command", echo_short(info.command).into()),
        ("status", status),
        ("startTime", info.start_time.to_string().into()),
    ]);
    if let Some(end) = info.end_time.filter(|_| with_end) {
        summary.insert("endTime", end.to_string());
    }
    if let Some(code) = info.exit_code {
        summary.insert("exitCode", code);
    }
    summary
}

/// The head of a command: a listing has many.
fn echo_short(mut command: String) -> String {
    const MOST: usize = 4096;
    if command.len() > MOST {
        command.truncate(command.floor_char_boundary(MOST));
    }
    command
}

async fn kill(services: &Services, mut arguments: Arguments) -> Result<Value, ApiError> {
    let id = arguments.text("processId")?;
    services.processes.kill(&id, libc::SIGTERM).await?;
    Ok(Value::Object(object([
        ("success", true.into()),
        ("processId", id.into()),
        ("timestamp", now()),
    ])))
}

async fn kill_all(services: &Services) -> Result<Value, ApiError> {
    let count = services.processes.kill_all().await?;
    Ok(Value::Object(object([
        ("success", true.into()),
        ("cleanedCount", number(count)),
        ("timestamp", now()),
    ])))
}

fn logs(services: &Services, mut arguments: Arguments) -> Result<Value, ApiError> {
    let id = arguments.text("processId")?;
    let logs = services.processes.logs(&id)?;
    Ok(Value::Object(object([
        ("success", true.into()),
        ("processId", id.into()),
        ("stdout", logs.stdout.content.into()),
        ("stderr", logs.stderr.content.into()),
        ("timestamp", now()),
    ])))
}

fn follow(services: &Services, mut arguments: Arguments) -> Result<Value, ApiError> {
    let id = arguments.text("processId")?;
    Ok(services.processes.follow(&id)?.into())
}
