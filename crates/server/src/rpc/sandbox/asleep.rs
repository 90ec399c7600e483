//! Calls that only look, and what they find while the sandbox sleeps.

use capnweb::{ReadableStream, Value};
use hutch_protocol::{ApiError, ErrorCode};
use hutch_sandboxes::Weight;

use super::super::args;

/// Whether a forwarded method keeps its sandbox awake.
pub(super) fn weight(method: &str) -> Weight {
    match method {
        "listProcesses" | "getProcess" | "getProcessLogs" | "streamProcessLogs" => Weight::Passive,
        _ => Weight::Full,
    }
}

/// What a passive call answers without a machine: no process outlives a boot.
pub(super) fn answer(method: &str, args: &[Value]) -> Result<Value, ApiError> {
    match method {
        "listProcesses" => Ok(Value::Array(Vec::new())),
        "getProcess" => Ok(Value::Null),
        "streamProcessLogs" if args.is_empty() => {
            let (writer, reader) = ReadableStream::channel(1);
            writer.close();
            Ok(Value::Readable(reader))
        }
        _ => {
            let id: String = args::at(args, 0)
                .as_str()
                .unwrap_or_default()
                .chars()
                .take(80)
                .collect();
            let message = format!(
                "process {id:?} does not exist: the sandbox sleeps, and no process outlives sleep"
            );
            Err(ApiError::new(ErrorCode::ProcessNotFound, message).with("processId", id))
        }
    }
}
