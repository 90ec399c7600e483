//! Values on their way in and out.

use std::sync::Arc;

use capnweb::{Stub, Value};
use hutch_protocol::limits::ARGUMENT_CONTENT_MAX;
use hutch_protocol::{ApiError, ErrorCode};

use crate::references::{ClientFunction, SandboxObject};
use crate::streams::{held, held_sink, sieved, sieved_sink};
use crate::{Admitted, host_object};

/// Arguments of a client's call on their way into a sandbox.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE` for more than `ARGUMENT_CONTENT_MAX` bytes of text and
/// binary data; `FORBIDDEN` for an object of the host; `VALIDATION_FAILED` for
/// a kind of value that does not cross.
pub fn inward_all(values: Vec<Value>) -> Result<Vec<Value>, ApiError> {
    let bytes = values
        .iter()
        .map(content)
        .fold(0_usize, usize::saturating_add);
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

/// The bytes of text and binary data in a value. A new kind must say here what
/// it weighs.
fn content(value: &Value) -> usize {
    let sum = |parts: &mut dyn Iterator<Item = usize>| parts.fold(0, usize::saturating_add);
    let fields = |object: &capnweb::Object| {
        sum(&mut object
            .iter()
            .map(|(name, member)| name.len().saturating_add(content(member))))
    };
    match value {
        Value::String(text) | Value::Url(text) => text.len(),
        Value::BigInt(number) => number.as_str().len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::TypedArray(array) => array.bytes().len(),
        Value::Array(items) => sum(&mut items.iter().map(content)),
        Value::Object(members) => fields(members),
        Value::Error(error) => sum(&mut [
            error.name.len(),
            error.message.len(),
            error.stack.as_ref().map_or(0, String::len),
            fields(&error.props),
        ]
        .into_iter()),
        Value::Headers(headers) => sum(&mut headers
            .iter()
            .map(|(name, value)| name.len().saturating_add(value.len()))),
        // Refused whatever they hold.
        Value::Request(_) | Value::Response(_) | Value::Blob(_) => 0,
        Value::Undefined
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Date(_)
        | Value::Stub(_)
        | Value::Promise(_)
        | Value::Readable(_)
        | Value::Writable(_) => 0,
    }
}

/// One value on its way into a sandbox.
pub(crate) fn inward(value: Value) -> Result<Value, ApiError> {
    match value {
        Value::Stub(stub) if !stub.is_remote() => Err(host_object()),
        Value::Stub(stub) => Ok(Value::Stub(Stub::local(Arc::new(ClientFunction(stub))))),
        Value::Promise(_) => Err(host_object()),
        Value::Readable(stream) => Ok(Value::Readable(sieved(stream))),
        Value::Writable(sink) => Ok(Value::Writable(sieved_sink(sink))),
        other => parts(other, &mut inward),
    }
}

/// A result on its way out of a sandbox, for as long as the call's incarnation.
///
/// # Errors
/// `FORBIDDEN` for an object of the host; `VALIDATION_FAILED` for a kind of
/// value that does not cross.
pub fn outward(value: Value, admitted: &Arc<dyn Admitted>) -> Result<Value, ApiError> {
    match value {
        Value::Stub(stub) if !stub.is_remote() => Err(host_object()),
        Value::Stub(stub) => {
            let object = SandboxObject::new(stub, admitted.door());
            Ok(Value::Stub(Stub::local(Arc::new(object))))
        }
        Value::Promise(_) => Err(host_object()),
        Value::Readable(stream) => Ok(Value::Readable(held(stream, Arc::clone(admitted)))),
        Value::Writable(sink) => Ok(Value::Writable(held_sink(sink, Arc::clone(admitted)))),
        other => parts(other, &mut |part| outward(part, admitted)),
    }
}

/// A value that is data alone: an argument of a callback, a chunk of a stream.
pub(crate) fn inert(value: Value) -> Result<Value, ApiError> {
    match value {
        Value::Stub(_) | Value::Promise(_) | Value::Readable(_) | Value::Writable(_) => {
            Err(host_object())
        }
        other => parts(other, &mut inert),
    }
}

/// Applies a step to each part of a value. Values nest no deeper than the
/// wire's limit lets them.
fn parts(
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
        // Not here: whoever calls has dealt with them.
        Value::Stub(_) | Value::Promise(_) | Value::Readable(_) | Value::Writable(_) => {
            return Err(host_object());
        }
        plain @ (Value::Undefined
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::BigInt(_)
        | Value::Date(_)
        | Value::Bytes(_)
        | Value::TypedArray(_)
        | Value::Url(_)
        | Value::Headers(_)) => plain,
    })
}
