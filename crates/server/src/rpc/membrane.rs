//! What may cross between a client and a sandbox.
//!
//! Plain values cross as they are. A client's function crosses as a function
//! that does nothing but call it. An object of a sandbox crosses bound to its
//! incarnation. Nothing of this host's own crosses in either direction: a
//! client could else hand its project to the code in a sandbox without meaning
//! to, or a sandbox reach what only clients may.

use std::sync::Arc;

use capnweb::{CallFuture, ErrorValue, Path, ReadableStream, Stub, Target, Value, WritableStream};
use hutch_protocol::limits::ARGUMENT_CONTENT_MAX;
use hutch_protocol::{ApiError, ErrorCode};
use hutch_sandboxes::{Admission, Binding};

use super::sandbox::{failed, guarded, interrupted};
use super::{error_value, run};

/// Bytes of a stream that wait between the two sessions.
const WINDOW: usize = 1024 * 1024;
/// What an error calls a stream that an incarnation's end broke.
const STREAM: &str = "the stream";

/// What holds a result of a sandbox to its incarnation.
#[derive(Clone)]
pub(super) struct Guard {
    admission: Arc<Admission>,
    binding: Binding,
}

impl Guard {
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        let binding = admission.bind();
        Self { admission, binding }
    }
}

fn host_object() -> ApiError {
    ApiError::new(
        ErrorCode::Forbidden,
        "an object of the server cannot be passed into or out of a sandbox; pass functions of your own and plain values",
    )
}

/// Arguments on their way into a sandbox.
pub(super) fn inward_all(values: Vec<Value>) -> Result<Vec<Value>, ApiError> {
    let bytes: usize = values.iter().map(content).sum();
    if bytes > ARGUMENT_CONTENT_MAX {
        return Err(ApiError::new(
            ErrorCode::PayloadTooLarge,
            format!(
                "the arguments have {bytes} bytes of content, {ARGUMENT_CONTENT_MAX} at most; pass a stream instead"
            ),
        ));
    }
    values.into_iter().map(inward).collect()
}

/// The bytes of text and binary data in a value.
fn content(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Array(items) => items.iter().map(content).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| name.len() + content(member))
            .sum(),
        _ => 0,
    }
}

/// One value on its way into a sandbox.
fn inward(value: Value) -> Result<Value, ApiError> {
    match value {
        Value::Stub(stub) if !stub.is_remote() => Err(host_object()),
        Value::Stub(stub) => Ok(Value::Stub(Stub::local(Arc::new(ClientFunction(stub))))),
        Value::Promise(_) => Err(host_object()),
        Value::Readable(stream) => Ok(Value::Readable(sieved(stream))),
        Value::Writable(sink) => Ok(Value::Writable(sieved_sink(sink))),
        other => map_parts(other, &mut |part| inward(part)),
    }
}

/// A result on its way out of a sandbox.
pub(super) fn outward(value: Value, guard: &Guard) -> Result<Value, ApiError> {
    match value {
        Value::Stub(stub) if !stub.is_remote() => Err(host_object()),
        Value::Stub(stub) => {
            let object = SandboxObject {
                stub,
                binding: guard.binding.clone(),
            };
            Ok(Value::Stub(Stub::local(Arc::new(object))))
        }
        Value::Promise(_) => Err(host_object()),
        Value::Readable(stream) => Ok(Value::Readable(held(stream, guard))),
        Value::Writable(sink) => Ok(Value::Writable(held_sink(sink, guard))),
        other => map_parts(other, &mut |part| outward(part, guard)),
    }
}

/// Applies a step to each part of a value. Values nest no deeper than the
/// wire's limit lets them.
fn map_parts(
    value: Value,
    step: &mut dyn FnMut(Value) -> Result<Value, ApiError>,
) -> Result<Value, ApiError> {
    Ok(match value {
        Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.into_iter().map(step).collect();
            Value::Array(items?)
        }
        Value::Object(mut members) => {
            for (_, member) in members.iter_mut() {
                *member = step(member.take())?;
            }
            Value::Object(members)
        }
        Value::Error(mut error) => {
            for (_, member) in error.props.iter_mut() {
                *member = step(member.take())?;
            }
            Value::Error(error)
        }
        // Their bodies may be streams; nobody here needs them.
        Value::Request(_) | Value::Response(_) | Value::Blob(_) => {
            return Err(ApiError::new(
                ErrorCode::ValidationFailed,
                "requests, responses and blobs cannot be passed into or out of a sandbox; pass bytes or a stream",
            ));
        }
        plain => plain,
    })
}

/// A client's function, as a sandbox sees it.
struct ClientFunction(Stub);

impl Target for ClientFunction {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        run(async move {
            let args: Result<Vec<_>, _> = args.into_iter().map(inert).collect();
            let result = self.0.call(path, args?).await;
            let result = result.map_err(|error| {
                ApiError::new(ErrorCode::UnknownError, super::error_text(&error))
            })?;
            inward(result)
        })
    }
}

/// An argument of a callback: data alone.
fn inert(value: Value) -> Result<Value, ApiError> {
    match value {
        Value::Stub(_) | Value::Promise(_) | Value::Readable(_) | Value::Writable(_) => {
            Err(host_object())
        }
        other => map_parts(other, &mut inert),
    }
}

/// An object that lives in one incarnation.
struct SandboxObject {
    stub: Stub,
    binding: Binding,
}

impl Target for SandboxObject {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        run(async move {
            let operation = capnweb::display_path(&path);
            let admission = Arc::new(self.binding.enter(&operation).await?);
            let call = self.stub.call(path, inward_all(args)?);
            let result = guarded(&admission, &operation, call).await?;
            outward(result, &Guard::new(admission))
        })
    }
}

/// The same stream, which counts as activity, keeps the sandbox awake, and ends
/// with a typed error when the incarnation does.
fn held(mut stream: ReadableStream, guard: &Guard) -> ReadableStream {
    let (writer, reader) = ReadableStream::channel(WINDOW);
    let admission = Arc::clone(&guard.admission);
    // Ends with the stream, with its reader, or with the incarnation.
    tokio::spawn(async move {
        loop {
            let chunk = tokio::select! {
                biased;
                chunk = stream.next() => chunk,
                reason = admission.ended() => return writer.abort(ended(&admission, reason)),
                canceled = writer.closed() => return stream.cancel(canceled.0),
            };
            let chunk = match chunk {
                None => return writer.close(),
                Some(Err(error)) => {
                    // The end of an incarnation also breaks its streams; say so.
                    let boot_over = futures_util::FutureExt::now_or_never(admission.ended());
                    return writer.abort(match boot_over {
                        Some(reason) => ended(&admission, reason),
                        None => error_value(failed(&admission, STREAM, &error).await),
                    });
                }
                Some(Ok(chunk)) => chunk,
            };
            let Ok(chunk) = inert(chunk) else {
                return writer.abort(error_value(host_object()));
            };
            admission.touch();
            tokio::select! {
                written = writer.write(chunk) => if let Err(canceled) = written {
                    return stream.cancel(canceled.0);
                },
                reason = admission.ended() => return writer.abort(ended(&admission, reason)),
            }
        }
    });
    reader
}

/// The same sink, bound to the incarnation alike.
fn held_sink(mut sink: WritableStream, guard: &Guard) -> WritableStream {
    let (ours, mut reader) = WritableStream::channel(WINDOW);
    let admission = Arc::clone(&guard.admission);
    // Ends with the writer, with the sink, or with the incarnation.
    tokio::spawn(async move {
        loop {
            let chunk = tokio::select! {
                biased;
                chunk = reader.next() => chunk,
                reason = admission.ended() => return reader.cancel(ended(&admission, reason)),
            };
            let written = match chunk {
                None => {
                    let _ = sink.close().await;
                    return;
                }
                Some(Err(error)) => return sink.abort(error).await,
                Some(Ok(chunk)) => match inert(chunk) {
                    Ok(chunk) => sink.write(chunk).await,
                    Err(error) => return reader.cancel(error_value(error)),
                },
            };
            admission.touch();
            if let Err(error) = written {
                return reader.cancel(error_value(failed(&admission, STREAM, &error).await));
            }
        }
    });
    ours
}

/// A client's stream, of which only data comes through.
fn sieved(mut stream: ReadableStream) -> ReadableStream {
    let (writer, reader) = ReadableStream::channel(WINDOW);
    // Ends with the stream or with its reader.
    tokio::spawn(async move {
        loop {
            let chunk = tokio::select! {
                chunk = stream.next() => chunk,
                canceled = writer.closed() => return stream.cancel(canceled.0),
            };
            let chunk = match chunk {
                None => return writer.close(),
                Some(Err(error)) => return writer.abort(error),
                Some(Ok(chunk)) => inert(chunk),
            };
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => return writer.abort(error_value(error)),
            };
            if let Err(canceled) = writer.write(chunk).await {
                return stream.cancel(canceled.0);
            }
        }
    });
    reader
}

/// A client's sink, into which only data goes.
fn sieved_sink(mut sink: WritableStream) -> WritableStream {
    let (ours, mut reader) = WritableStream::channel(WINDOW);
    // Ends with the writer or with the sink.
    tokio::spawn(async move {
        loop {
            let chunk = tokio::select! {
                chunk = reader.next() => chunk,
                error = sink.closed() => return reader.cancel(error),
            };
            let chunk = match chunk {
                None => {
                    // The writer learns of a failed close by its own end.
                    let _ = sink.close().await;
                    return;
                }
                Some(Err(error)) => return sink.abort(error).await,
                Some(Ok(chunk)) => inert(chunk),
            };
            let written = match chunk {
                Ok(chunk) => sink.write(chunk).await,
                Err(error) => {
                    let error = error_value(error);
                    reader.cancel(error.clone());
                    return sink.abort(error).await;
                }
            };
            if let Err(error) = written {
                return reader.cancel(error);
            }
        }
    });
    ours
}

fn ended(admission: &Admission, reason: &str) -> ErrorValue {
    error_value(interrupted(STREAM, reason, admission.machine().boot()))
}
