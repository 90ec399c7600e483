//! Programs with exact byte streams.

use crate::{
    ClientError, decode,
    link::{Remote, Wire},
    sandbox::env_value,
};
use bytes::Bytes;
use capnweb::{Object, ReadableStream, Stub, Value};
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Text for `bash -c`.
    Command(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// Options of [`crate::Sandbox::spawn`].
#[derive(Debug)]
pub struct SpawnOptions {
    /// What to run.
    pub program: Program,
    /// Working directory; `/workspace` when absent.
    pub cwd: Option<String>,
    /// Variables of this program, over the sandbox's.
    pub env: BTreeMap<String, String>,
    /// Standard input, chunks of bytes; empty when absent.
    pub stdin: Option<ReadableStream>,
    /// Time after which the program is ended and answers 124.
    pub timeout: Option<Duration>,
}

impl SpawnOptions {
    /// Runs `program` with defaults.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            cwd: None,
            env: BTreeMap::new(),
            stdin: None,
            timeout: None,
        }
    }

    fn into_value(self) -> Value {
        let mut object = Object::new();
        match self.program {
            Program::Command(text) => object.insert("command", Value::String(text)),
            Program::Argv(words) => {
                let words = words.into_iter().map(Value::String).collect();
                object.insert("argv", Value::Array(words))
            }
        };
        if let Some(cwd) = self.cwd {
            object.insert("cwd", Value::String(cwd));
        }
        if !self.env.is_empty() {
            object.insert("env", env_value(&self.env));
        }
        if let Some(timeout) = self.timeout {
            object.insert("timeout", Value::Number(timeout.as_millis() as f64));
        }
        if let Some(stdin) = self.stdin {
            object.insert("stdin", Value::Readable(stdin));
        }
        Value::Object(object)
    }
}

/// A running program. Dropping all of it ends the program and all it started.
#[derive(Debug)]
pub struct Spawned {
    /// Process id inside the sandbox.
    pub pid: u32,
    /// Standard output.
    pub stdout: ByteStream,
    /// Standard error.
    pub stderr: ByteStream,
    /// How to learn its end.
    pub exit: ExitHandle,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// Exit code, 128 + signal for a killed program, 124 after a timeout.
    pub exit_code: i32,
    /// The signal that ended it.
    #[serde(default)]
    pub signal: Option<i32>,
    /// Whether the timeout ended it.
    #[serde(default)]
    pub timed_out: bool,
}

/// Waits for a program's end, or brings it about.
#[derive(Debug, Clone)]
pub struct ExitHandle {
    // Keeps the connection for as long as the program is held.
    _wire: Arc<Wire>,
    exit: Stub,
}

impl ExitHandle {
    /// Sends a signal, such as `SIGINT`, to the program and all it started.
    /// `SIGTERM` and `SIGKILL` also see to it that nothing is left.
    ///
    /// # Errors
    /// VALIDATION_FAILED for a signal that is none; OPERATION_INTERRUPTED when the
    /// sandbox or the connection has ended, and the program with it.
    pub async fn kill(&self, signal: &str) -> Result<(), ClientError> {
        let args = vec![Value::from(signal)];
        Ok(self.exit.call("kill", args).await.map(drop)?)
    }

    /// The end of the program.
    ///
    /// # Errors
    /// OPERATION_INTERRUPTED when the sandbox or the connection ended first.
    pub async fn wait(&self) -> Result<Exit, ClientError> {
        let answer = self.exit.call("", vec![]).await?;
        decode::typed("spawn", &answer)
    }
}

/// Bytes that a program writes. Dropping it closes the program's end.
#[derive(Debug)]
pub struct ByteStream {
    pub(crate) stream: ReadableStream,
}

impl ByteStream {
    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    /// OPERATION_INTERRUPTED when the sandbox or the connection ended first.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        match self.stream.next().await {
            None => Ok(None),
            Some(Ok(Value::Bytes(bytes))) => Ok(Some(bytes)),
            Some(Ok(Value::String(text))) => Ok(Some(Bytes::from(text))),
            Some(Ok(_)) => Err(shape("a stream holds something other than bytes")),
            Some(Err(error)) => Err(error.into()),
        }
    }
}

pub(crate) async fn start(handle: &Remote, options: SpawnOptions) -> Result<Spawned, ClientError> {
    let args = vec![options.into_value()];
    let (wire, stub) = handle.find().await?;
    let Value::Object(mut parts) = stub.call("spawn", args).await? else {
        return Err(shape("no object"));
    };
    let pid = match parts.get("pid") {
        Some(Value::Number(pid)) if (1.0..=f64::from(u32::MAX)).contains(pid) => *pid as u32,
        _ => return Err(shape("no pid")),
    };
    let mut stream = |name: &str| match parts.remove(name) {
        Some(Value::Readable(stream)) => Ok(ByteStream { stream }),
        _ => Err(shape(&format!("no stream {name}"))),
    };
    let (stdout, stderr) = (stream("stdout")?, stream("stderr")?);
    let Some(Value::Stub(exit)) = parts.remove("exit") else {
        return Err(shape("no exit"));
    };
    let exit = ExitHandle { _wire: wire, exit };
    Ok(Spawned {
        pid,
        stdout,
        stderr,
        exit,
    })
}

fn shape(reason: &str) -> ClientError {
    ClientError::Shape {
        call: "spawn".to_owned(),
        reason: reason.to_owned(),
    }
}
