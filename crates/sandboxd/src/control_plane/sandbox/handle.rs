//! A process as callers hold it: its data, and functions that name it by its id.

use super::processes::logs;
use super::waiting;
use crate::control_plane::answer;
use crate::control_plane::arguments::Arguments;
use crate::control_plane::processes::summary;
use crate::control_plane::signals::signal;
use crate::managers::process_table::Record;
use crate::services::processes::Processes;
use capnweb::{Object, Stub, Value};
use hutch_protocol::ApiError;
use std::sync::Arc;

/// `{id, pid, command, status, startTime, …}` with the functions `kill(signal?)`,
/// `getStatus()`, `getLogs()`, `streamLogs()`, `waitForExit(timeout?)`, `waitForLog(text,
/// timeout?)` and `waitForPort(port, options?)`.
pub(super) fn process(processes: &Arc<Processes>, record: &Record) -> Object {
    let mut process = summary(record, true);
    for (name, verb) in [
        ("kill", Verb::Kill),
        ("getStatus", Verb::Status),
        ("getLogs", Verb::Logs),
        ("streamLogs", Verb::Follow),
        ("waitForExit", Verb::Wait("waitForExit")),
        ("waitForLog", Verb::Wait("waitForLog")),
        ("waitForPort", Verb::Wait("waitForPort")),
    ] {
        let (processes, id) = (Arc::clone(processes), record.id.clone());
        let function = Stub::function(move |arguments| {
            let (processes, id) = (Arc::clone(&processes), id.clone());
            async move {
                verb.run(&processes, &id, arguments)
                    .await
                    .map_err(answer::error)
            }
        });
        process.insert(name, function);
    }
    process
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Kill,
    Status,
    Logs,
    Follow,
    Wait(&'static str),
}

impl Verb {
    async fn run(
        self,
        processes: &Processes,
        id: &str,
        arguments: Vec<Value>,
    ) -> Result<Value, ApiError> {
        let mut arguments = Arguments::new(arguments);
        match self {
            Self::Kill => {
                let number = signal(&arguments.value())?;
                processes.kill(id, number).await?;
                Ok(Value::Undefined)
            }
            Self::Status => {
                let status = processes.get(id)?.state().status;
                Ok(Value::serialize(&status).unwrap_or_default())
            }
            Self::Logs => logs(processes, id),
            Self::Follow => Ok(processes.follow(id)?.into()),
            Self::Wait(name) => waiting::call(processes, name, id, arguments).await,
        }
    }
}
