//! The end that is read.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{Channel, StreamWriter, reader_gone};
use crate::error::ErrorValue;
use crate::value::Value;

/// The end of a stream that is read. Dropping it cancels the stream: the
/// producer's next write fails.
///
/// A chunk counts as read once [`next`](Self::next) has returned it, and not
/// before: a producer at the peer is held back by a reader that does not read.
pub struct ReadableStream {
    channel: Arc<Channel>,
    /// Keeps the session of a received stream.
    _session: Option<Arc<dyn Any + Send + Sync>>,
}

impl ReadableStream {
    /// A stream of this side. Writes wait while `limit` bytes are unread; a
    /// chunk larger than that passes alone.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let (writer, mut stream) = capnweb::ReadableStream::channel(64 * 1024);
    /// tokio::spawn(async move {
    ///     writer.write(b"hello".to_vec()).await?;
    ///     writer.close();
    ///     Ok::<_, capnweb::Canceled>(())
    /// });
    /// assert!(stream.next().await.is_some());
    /// assert!(stream.next().await.is_none());
    /// # });
    /// ```
    pub fn channel(limit: usize) -> (StreamWriter, ReadableStream) {
        let channel = Channel::new(limit);
        (StreamWriter::new(channel.clone()), Self::new(channel, None))
    }

    pub(crate) fn new(channel: Arc<Channel>, session: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        Self {
            channel,
            _session: session,
        }
    }

    /// The next chunk; `None` after the end. An error is the last thing a
    /// stream gives. May be dropped and called again without loss.
    pub async fn next(&mut self) -> Option<Result<Value, ErrorValue>> {
        self.channel.next().await
    }

    /// Cancels the stream with a reason that the producer gets.
    pub fn cancel(self, reason: ErrorValue) {
        self.channel.cancel(Arc::new(reason));
    }
}

impl Drop for ReadableStream {
    fn drop(&mut self) {
        self.channel.cancel(Arc::new(reader_gone()));
    }
}

impl fmt::Debug for ReadableStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ReadableStream({:?})", self.channel)
    }
}
