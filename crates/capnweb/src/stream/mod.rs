//! Streams of values with back-pressure.

mod channel;
pub(crate) mod flow;
mod pump;
mod readable;
mod remote;
mod writable;
mod writer;

pub(crate) use channel::{Ack, Channel, Item};
pub(crate) use pump::pump;
pub use readable::ReadableStream;
pub(crate) use remote::RemoteSink;
pub(crate) use writable::Sink;
pub use writable::WritableStream;
pub use writer::StreamWriter;

use crate::codes;
use crate::error::ErrorValue;

/// The reader is gone; its reason.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the reader canceled the stream: {0}")]
pub struct Canceled(pub ErrorValue);

pub(crate) fn reader_gone() -> ErrorValue {
    ErrorValue::coded(
        codes::STREAM_CLOSED,
        "The stream was canceled by its reader.",
    )
}

pub(crate) fn writer_gone() -> ErrorValue {
    ErrorValue::coded(
        codes::STREAM_CLOSED,
        "The stream was dropped without being closed.",
    )
}
