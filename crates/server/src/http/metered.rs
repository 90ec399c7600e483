//! A byte stream that a stranger cannot fill, and that counts what moves.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::pulse::Pulse;

/// Fails a read once more than `allowance` bytes have come in while the door
/// is not open yet. A frame is buffered whole before anybody sees it, so the
/// session's own limits come too late for a peer that sends only one.
pub(super) struct Metered<S> {
    stream: S,
    allowance: usize,
    open: Arc<AtomicBool>,
    pulse: Arc<Pulse>,
}

impl<S> Metered<S> {
    pub(super) fn new(
        stream: S,
        allowance: usize,
        open: Arc<AtomicBool>,
        pulse: Arc<Pulse>,
    ) -> Self {
        Self {
            stream,
            allowance,
            open,
            pulse,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let came = buffer.filled().len() - before;
        self.pulse.moved(came);
        if !self.open.load(Ordering::Relaxed) {
            match self.allowance.checked_sub(came) {
                Some(left) => self.allowance = left,
                None => {
                    buffer.set_filled(before);
                    return Poll::Ready(Err(io::Error::other("too much before authentication")));
                }
            }
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(taken)) = &polled {
            self.pulse.moved(*taken);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn only_an_open_door_lets_more_in() {
        for (open, expected) in [(false, false), (true, true)] {
            let (mut peer, ours) = tokio::io::duplex(1024);
            peer.write_all(&[0; 600]).await.unwrap();
            drop(peer);
            let mut metered =
                Metered::new(ours, 512, Arc::new(AtomicBool::new(open)), Arc::default());
            let mut all = Vec::new();
            assert_eq!(metered.read_to_end(&mut all).await.is_ok(), expected);
        }
    }
}
