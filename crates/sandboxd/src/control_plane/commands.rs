//! The `commands` domain: the official contract, without sessions.

use super::Services;
use super::answer::{echo, now};
use super::arguments::{Arguments, Options};
use crate::services::commands::{Request, failed_stream};
use capnweb::Value;
use hutch_protocol::ApiError;
use hutch_protocol::exec::OutputEncoding;

/// `execute(command, sessionId, {timeoutMs, env, cwd}?)`: a result with text.
pub(super) async fn execute(
    services: &Services,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let request = request(&mut arguments)?;
    let command = request.command();
    let finished = services
        .commands
        .exec(request, OutputEncoding::Utf8)
        .await?;
    let code = finished.ended.code();
    Ok(Value::Object(super::answer::object([
        ("success", Value::Bool(code == 0)),
        ("exitCode", Value::from(code)),
        ("stdout", finished.stdout.content.into()),
        ("stderr", finished.stderr.content.into()),
        ("command", echo(command).into()),
        ("timestamp", now()),
    ])))
}

/// `executeStream(…)`: events. A command that cannot start is a stream of one error event.
pub(super) async fn execute_stream(
    services: &Services,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let started = async {
        let request = request(&mut arguments)?;
        services.commands.exec_stream(request, None).await
    };
    Ok(match started.await {
        Ok(stream) => stream.into(),
        Err(error) => failed_stream(&error).into(),
    })
}

fn request(arguments: &mut Arguments) -> Result<Request, ApiError> {
    let mut request = Request::shell(arguments.text("command")?);
    arguments.no_session()?;
    let mut options: Options = arguments.options()?;
    request.cwd = options.text("cwd")?;
    request.env = options.env()?;
    request.timeout = options.official_timeout()?;
    Ok(request)
}
