//! The end of a local stream that is written.

use std::sync::Arc;

use super::{Canceled, Channel, writer_gone};
use crate::error::ErrorValue;
use crate::value::Value;

/// The end of a local stream that is written. Dropping it without
/// [`close`](Self::close) ends the stream with an error.
#[derive(Debug)]
pub struct StreamWriter(Arc<Channel>);

impl StreamWriter {
    pub(crate) fn new(channel: Arc<Channel>) -> Self {
        Self(channel)
    }

    /// Writes a chunk once there is room. Dropped before it has resolved, the
    /// chunk is not written.
    pub async fn write(&self, chunk: impl Into<Value>) -> Result<(), Canceled> {
        self.0.write(chunk.into()).await
    }

    /// Resolves when the reader is gone.
    pub async fn closed(&self) -> Canceled {
        Canceled(Arc::unwrap_or_clone(self.0.canceled().await))
    }

    /// Ends the stream. The reader still gets what it has not read.
    pub fn close(self) {
        self.0.close(None);
    }

    /// Ends the stream with an error; what is unread is lost.
    pub fn abort(self, error: ErrorValue) {
        self.0.fail(Arc::new(error));
    }

    /// Ends the stream and waits until everything was read.
    pub(crate) async fn close_and_drain(self) -> Result<(), Arc<ErrorValue>> {
        self.0.close(None);
        self.0.read_to_end().await
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        self.0.fail(Arc::new(writer_gone()));
    }
}
