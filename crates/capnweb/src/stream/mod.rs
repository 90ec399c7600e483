//! Streams of values with back-pressure.

use crate::error::ErrorValue;
use crate::value::Value;

/// The reader is gone; its reason.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the reader canceled the stream: {0}")]
pub struct Canceled(pub ErrorValue);

/// The end of a stream that is read. Dropping it cancels the stream: the
/// producer's next write fails.
#[derive(Debug)]
pub struct ReadableStream(());

impl ReadableStream {
    /// A stream of this side. Writes wait while `limit` bytes are unread.
    pub fn channel(limit: usize) -> (StreamWriter, ReadableStream) {
        let _ = limit;
        (StreamWriter(()), ReadableStream(()))
    }

    /// The next chunk; `None` after the end. An error ends the stream.
    pub async fn next(&mut self) -> Option<Result<Value, ErrorValue>> {
        None
    }

    /// Cancels the stream with a reason that the producer gets.
    pub fn cancel(self, reason: ErrorValue) {
        drop(reason);
    }
}

/// The end of a local stream that is written. Dropping it without
/// [`close`](Self::close) ends the stream with an error.
#[derive(Debug)]
pub struct StreamWriter(());

impl StreamWriter {
    /// Writes a chunk once there is room.
    pub async fn write(&mut self, chunk: impl Into<Value>) -> Result<(), Canceled> {
        drop(chunk.into());
        Ok(())
    }

    /// Resolves when the reader is gone.
    pub async fn closed(&self) -> Canceled {
        std::future::pending().await
    }

    /// Ends the stream. The reader still gets what it has not read.
    pub fn close(self) {}

    /// Ends the stream with an error.
    pub fn abort(self, error: ErrorValue) {
        drop(error);
    }
}

/// A sink: given to a peer, or received from one.
#[derive(Debug)]
pub struct WritableStream(());

impl WritableStream {
    /// A sink to give away; what is written to it comes out of the stream.
    /// Writes wait while `limit` bytes are unread.
    pub fn channel(limit: usize) -> (WritableStream, ReadableStream) {
        let _ = limit;
        (WritableStream(()), ReadableStream(()))
    }

    /// Writes a chunk once there is room.
    pub async fn write(&mut self, chunk: impl Into<Value>) -> Result<(), ErrorValue> {
        drop(chunk.into());
        Ok(())
    }

    /// Ends the stream and waits until the receiver has read everything.
    pub async fn close(self) -> Result<(), ErrorValue> {
        Ok(())
    }

    /// Ends the stream with an error.
    pub async fn abort(self, error: ErrorValue) {
        drop(error);
    }
}
