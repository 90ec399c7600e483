//! Sinks: given to a peer, or received from one.

use std::fmt;
use std::sync::Arc;

use super::{Channel, ReadableStream, RemoteSink, StreamWriter};
use crate::error::ErrorValue;
use crate::value::Value;

/// A sink: given to a peer, or received from one. Dropping it without
/// [`close`](Self::close) ends the stream with an error.
pub struct WritableStream(Sink);

pub(crate) enum Sink {
    Local(StreamWriter, Arc<Channel>),
    Remote(RemoteSink),
}

impl WritableStream {
    /// A sink to give away; what is written to it comes out of the stream.
    /// Writes wait while `limit` bytes are unread.
    pub fn channel(limit: usize) -> (WritableStream, ReadableStream) {
        let channel = Channel::new(limit);
        let sink = Sink::Local(StreamWriter::new(channel.clone()), channel.clone());
        (Self(sink), ReadableStream::new(channel, None))
    }

    pub(crate) fn remote(sink: RemoteSink) -> Self {
        Self(Sink::Remote(sink))
    }

    pub(crate) fn into_sink(self) -> Sink {
        self.0
    }

    /// Writes a chunk once there is room. After an error there is no more use
    /// in writing.
    pub async fn write(&mut self, chunk: impl Into<Value>) -> Result<(), ErrorValue> {
        match &mut self.0 {
            Sink::Local(writer, _) => writer.write(chunk).await.map_err(|canceled| canceled.0),
            Sink::Remote(sink) => sink.write(chunk.into()).await.map_err(Arc::unwrap_or_clone),
        }
    }

    /// Ends the stream and waits until the receiver has read everything.
    pub async fn close(self) -> Result<(), ErrorValue> {
        match self.0 {
            Sink::Local(writer, _) => writer.close_and_drain().await,
            Sink::Remote(sink) => sink.close().await,
        }
        .map_err(Arc::unwrap_or_clone)
    }

    /// Ends the stream with an error.
    pub async fn abort(self, error: ErrorValue) {
        match self.0 {
            Sink::Local(writer, _) => writer.abort(error),
            Sink::Remote(sink) => sink.abort(error).await,
        }
    }

    /// Resolves when the receiver wants no more.
    pub async fn closed(&self) -> ErrorValue {
        Arc::unwrap_or_clone(match &self.0 {
            Sink::Local(_, channel) => channel.canceled().await,
            Sink::Remote(sink) => sink.failed().await,
        })
    }
}

impl fmt::Debug for WritableStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Sink::Local(_, channel) => write!(out, "WritableStream({channel:?})"),
            Sink::Remote(_) => out.write_str("WritableStream(remote)"),
        }
    }
}
