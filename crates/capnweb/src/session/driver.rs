//! Runs a session: reads, writes, ends.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};

use super::connection::CloseReason;
use super::outbox::Next;
use super::read::too_large;
use super::shared::Shared;
use crate::codes;
use crate::error::ErrorValue;
use crate::transport::{Frame, Transport, TransportError};

/// How long the peer may take to read the last messages.
const FAREWELL: Duration = Duration::from_secs(5);
/// The status of an aborted session.
const ABORTED: u16 = 3000;
/// Bytes of a close reason that a frame has room for.
const REASON: usize = 123;

/// Ends the session if the driver is dropped.
struct Guard(Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.close(CloseReason::Dropped);
    }
}

pub(super) fn drive<T: Transport>(
    io: T,
    shared: Arc<Shared>,
) -> impl Future<Output = CloseReason> + Send {
    let guard = Guard(shared);
    async move {
        let shared = &guard.0;
        let (mut sink, mut stream) = io.split();
        let reason = tokio::select! {
            reason = read(&mut stream, shared) => reason,
            reason = write(&mut sink, shared) => reason,
            reason = shared.closed() => reason,
        };
        shared.close(reason);
        let reason = shared.closed().await;
        let farewell = farewell(&mut sink, &mut stream, shared, &reason);
        // A peer that does not read is left.
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
        reason
    }
}

async fn read<T: Transport>(
    stream: &mut futures_util::stream::SplitStream<T>,
    shared: &Arc<Shared>,
) -> CloseReason {
    loop {
        match stream.next().await {
            Some(Ok(Frame::Text(text))) => shared.receive(&text),
            Some(Ok(Frame::Control)) => {}
            Some(Ok(Frame::Binary)) => {
                return CloseReason::Aborted(
                    ErrorValue::type_error("Received unexpected message type from WebSocket.")
                        .with_prop("code", codes::PROTOCOL_ERROR),
                );
            }
            Some(Ok(Frame::Close(code, reason))) => {
                return CloseReason::PeerClosed { code, reason };
            }
            Some(Err(TransportError::TooLarge(limit))) => {
                return CloseReason::Aborted(too_large(limit));
            }
            Some(Err(TransportError::Failed(cause))) => return CloseReason::Failed(cause),
            None => {
                return CloseReason::PeerClosed {
                    code: 1006,
                    reason: String::new(),
                };
            }
        }
        if shared.is_closed() {
            return shared.closed().await;
        }
    }
}

type Half<T> = futures_util::stream::SplitSink<T, Frame>;

async fn write<T: Transport>(sink: &mut Half<T>, shared: &Arc<Shared>) -> CloseReason {
    loop {
        match shared.outbox.next(shared.limits().queue_bytes) {
            Next::Send(text) => {
                if let Err(error) = sink.feed(Frame::Text(text)).await {
                    // The reader knows more: a close, or why it failed.
                    let patience = tokio::time::timeout(FAREWELL, shared.closed());
                    return patience
                        .await
                        .unwrap_or(CloseReason::Failed(error.to_string()));
                }
            }
            Next::Release(ids) => shared.release_imports(&ids),
            Next::Nothing if shared.is_let_go() => return CloseReason::Dropped,
            Next::Nothing => {
                if sink.flush().await.is_err() {
                    let patience = tokio::time::timeout(FAREWELL, shared.closed());
                    return patience
                        .await
                        .unwrap_or(CloseReason::Failed("write failed".to_owned()));
                }
                shared.outbox.filled().await;
            }
        }
    }
}

/// Sends what is left and the close frame, then waits for the peer's.
async fn farewell<T: Transport>(
    sink: &mut Half<T>,
    stream: &mut futures_util::stream::SplitStream<T>,
    shared: &Arc<Shared>,
    reason: &CloseReason,
) {
    let (code, text) = match reason {
        CloseReason::Aborted(error) => (ABORTED, error.message.as_str()),
        CloseReason::PeerAborted(_) => (ABORTED, ""),
        CloseReason::Dropped => (1000, ""),
        CloseReason::PeerClosed { .. } | CloseReason::Failed(_) | CloseReason::BatchEnded => {
            let _ = sink.close().await;
            return;
        }
    };
    let send = async {
        while let Next::Send(text) = shared.outbox.next(usize::MAX) {
            sink.feed(Frame::Text(text)).await?;
        }
        sink.send(Frame::Close(code, shorten(text))).await
    };
    // The peer may be waiting for us to read before it reads.
    let read = async { while let Some(Ok(_)) = stream.next().await {} };
    let (_, ()) = tokio::join!(send, read);
}

/// The most of the text that a close frame takes.
fn shorten(text: &str) -> String {
    let mut end = text.len().min(REASON);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}
