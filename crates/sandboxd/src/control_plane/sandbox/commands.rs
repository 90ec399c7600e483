//! `exec`, `execStream` and `spawn` of the handle.

use crate::control_plane::Services;
use crate::control_plane::answer::{self, echo, object};
use crate::control_plane::arguments::{Arguments, Options, wrong};
use crate::control_plane::signals::signal;
use crate::services::commands::{Ended, Program, Request, SpawnExit, Stdin};
use bytes::Bytes;
use capnweb::{CallFuture, Key, Object, Path, Stub, Target, Value, not_a_function};
use futures_util::FutureExt;
use futures_util::future::ready;
use hutch_protocol::exec::OutputEncoding;
use hutch_protocol::{ApiError, ErrorCode};
use std::sync::Arc;

/// How output travels.
const ENCODINGS: [(&str, OutputEncoding); 3] = [
    ("utf-8", OutputEncoding::Utf8),
    ("utf8", OutputEncoding::Utf8),
    ("base64", OutputEncoding::Base64),
];

/// `exec(command, options?)`: `{success, exitCode, stdout, stderr, …}`, or `stdoutBase64` and
/// `stderrBase64` with `encoding: "base64"`.
pub(in crate::control_plane) async fn exec(
    services: &Services,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let command = arguments.text("command")?;
    let mut options = arguments.options()?;
    let encoding = options.encoding(&ENCODINGS, OutputEncoding::Utf8)?;
    let request = request(Program::Shell(command.clone()), &mut options)?;
    let finished = services.commands.exec(request, encoding).await?;
    let code = finished.ended.code();
    let (out, err) = match encoding {
        OutputEncoding::Utf8 => ("stdout", "stderr"),
        OutputEncoding::Base64 => ("stdoutBase64", "stderrBase64"),
    };
    let result = object([
        ("success", Value::Bool(code == 0)),
        ("exitCode", code.into()),
        (out, finished.stdout.content.into()),
        (err, finished.stderr.content.into()),
        ("stdoutTruncated", finished.stdout.truncated.into()),
        ("stderrTruncated", finished.stderr.truncated.into()),
        ("timedOut", finished.ended.timed_out.into()),
        ("command", echo(command).into()),
        ("duration", answer::number(finished.duration.as_millis())),
        ("timestamp", finished.started.to_string().into()),
    ]);
    Ok(result.into())
}

/// `execStream(command, options?)`: server-sent events.
pub(in crate::control_plane) async fn exec_stream(
    services: &Services,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let command = arguments.text("command")?;
    if command.trim().is_empty() {
        return Err(empty());
    }
    let request = request(Program::Shell(command), &mut arguments.options()?)?;
    Ok(services.commands.exec_stream(request, None).await?.into())
}

/// `spawn({argv | command, cwd, env, stdin, timeout})`: `{pid, stdout, stderr, exit}`. `exit()`
/// waits for `{exitCode, signal?, timedOut}`; `exit.kill(signal?)` ends or signals everything;
/// releasing `exit` ends everything.
/// `spawn(command, options?)` is the same.
pub(in crate::control_plane) async fn spawn(
    services: &Services,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let (program, mut options) = match arguments.value() {
        Value::String(command) => (Program::Shell(command), arguments.options()?),
        Value::Object(object) => {
            let mut options = Options::from(object);
            (program(&mut options)?, options)
        }
        other => {
            return Err(wrong(
                "spawn's argument",
                "an object with argv or command",
                &other,
            ));
        }
    };
    if matches!(&program, Program::Shell(command) if command.trim().is_empty()) {
        return Err(empty());
    }
    let request = request(program, &mut options)?;
    let spawned = services.commands.spawn(request).await?;
    Ok(Value::Object(object([
        ("pid", spawned.pid.into()),
        ("stdout", spawned.stdout.into()),
        ("stderr", spawned.stderr.into()),
        ("exit", Stub::local(Arc::new(Exit(spawned.exit))).into()),
    ])))
}

fn program(options: &mut Options) -> Result<Program, ApiError> {
    match (options.value("argv"), options.text("command")?) {
        (Value::Undefined | Value::Null, Some(command)) => Ok(Program::Shell(command)),
        (Value::Array(items), None) => {
            let argument = |value| match value {
                Value::String(text) => Ok(text),
                other => Err(wrong("argv", "an array of strings", &other)),
            };
            Ok(Program::Argv(
                items.into_iter().map(argument).collect::<Result<_, _>>()?,
            ))
        }
        (Value::Undefined | Value::Null, None) | (Value::Array(_), Some(_)) => Err(ApiError::new(
            ErrorCode::InvalidCommand,
            "Invalid command: give either argv, a program and its arguments, or command, a line for bash",
        )),
        (other, _) => Err(wrong("argv", "an array of strings", &other)),
    }
}

pub(in crate::control_plane) fn request(
    program: Program,
    options: &mut Options,
) -> Result<Request, ApiError> {
    options.no_session()?;
    Ok(Request {
        program,
        cwd: options.text("cwd")?,
        env: options.env()?,
        timeout: options.timeout("timeout")?,
        stdin: match options.value("stdin") {
            Value::Undefined | Value::Null => Stdin::Empty,
            Value::String(text) => Stdin::Bytes(Bytes::from(text)),
            Value::Bytes(bytes) => Stdin::Bytes(bytes),
            Value::Readable(stream) => Stdin::Stream(stream),
            other => return Err(wrong("stdin", "a string, bytes or a stream", &other)),
        },
    })
}

/// The refusal of a command without text.
pub(in crate::control_plane) fn empty() -> ApiError {
    ApiError::new(
        ErrorCode::InvalidCommand,
        "Invalid command: empty command provided",
    )
}

/// The function `exit` of a spawned command, with a method `kill`.
struct Exit(SpawnExit);

impl Target for Exit {
    fn call(self: Arc<Self>, path: Path, arguments: Vec<Value>) -> CallFuture {
        match path.as_slice() {
            [] => async move {
                let ended = self.0.wait().await.map_err(answer::error)?;
                Ok(report(ended).into())
            }
            .boxed(),
            [Key::Name(name)] if name == "kill" => async move {
                let number = signal(&Arguments::new(arguments).value()).map_err(answer::error)?;
                self.0.kill(number).await.map_err(answer::error)?;
                Ok(Value::Undefined)
            }
            .boxed(),
            other => ready(Err(not_a_function(other))).boxed(),
        }
    }
}

fn report(ended: Ended) -> Object {
    let mut report = object([
        ("exitCode", ended.code().into()),
        ("timedOut", ended.timed_out.into()),
    ]);
    if let Some(number) = ended.exit.signal() {
        report.insert("signal", number);
    }
    report
}
