//! Whether anybody is still at the other end.
//!
//! TCP only tells that a machine is there. A caller that hangs, or that sends
//! a frame a byte a minute, would hold its commands, and its sandbox awake, for
//! ever. So an idle one is pinged, and one that gives no sign of life is left.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use capnweb::{Frame, Transport, TransportError};
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// How often one is looked at, and pinged if it was silent since.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Looks without a sign of life after which it is gone: two minutes.
const SILENT_LOOKS: u32 = 4;
/// Bytes that must move, in either direction, to count as one. A frame of
/// 64 MiB takes long on a slow line, and a pong waits behind it.
const MOVED: u64 = 64 * 1024;

/// What is known of one connection.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    bytes: AtomicU64,
    gone: CancellationToken,
}

impl Pulse {
    /// So many bytes were received or taken by the network.
    pub(super) fn moved(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Resolves once nobody is there.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

/// A transport whose peer is watched, for as long as it is read.
pub(super) struct Watched<T> {
    io: T,
    pulse: Arc<Pulse>,
    looks: Interval,
    /// A frame came since the last look; a pong is one.
    heard: bool,
    silent: u32,
    bytes_then: u64,
}

impl<T: Transport> Watched<T> {
    /// Looks at it that often.
    pub(super) fn new(io: T, pulse: Arc<Pulse>, every: Duration) -> Self {
        let mut looks = interval_at(Instant::now() + every, every);
        // A machine that slept gives its callers the time that it owes them.
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            io,
            pulse,
            looks,
            heard: false,
            silent: 0,
            bytes_then: 0,
        }
    }

    /// Whether there was no sign of life for too long.
    fn look(&mut self) -> bool {
        let bytes = self.pulse.bytes.load(Ordering::Relaxed);
        if std::mem::take(&mut self.heard) || bytes.wrapping_sub(self.bytes_then) >= MOVED {
            self.silent = 0;
            self.bytes_then = bytes;
        } else {
            self.silent += 1;
        }
        self.silent >= SILENT_LOOKS
    }

    /// Sends a ping, unless the line is full: then the peer has not read.
    fn ping(&mut self, context: &mut Context<'_>) {
        if let Poll::Ready(Ok(())) = self.io.poll_ready_unpin(context)
            && self.io.start_send_unpin(Frame::Control).is_ok()
        {
            // What fails here fails for the reader, too.
            let _ = self.io.poll_flush_unpin(context);
        }
    }
}

impl<T: Transport> Stream for Watched<T> {
    type Item = Result<Frame, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.io.poll_next_unpin(context);
        if next.is_ready() {
            self.heard = true;
            return next;
        }
        while self.looks.poll_tick(context).is_ready() {
            if self.look() {
                self.pulse.gone.cancel();
            } else if self.silent > 0 {
                self.ping(context);
            }
        }
        Poll::Pending
    }
}

impl<T: Transport> Sink<Frame> for Watched<T> {
    type Error = TransportError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.io.poll_ready_unpin(context)
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Frame) -> Result<(), TransportError> {
        self.io.start_send_unpin(frame)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.io.poll_flush_unpin(context)
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.io.poll_close_unpin(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use capnweb::{Limits, Session};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;
    use tokio_util::task::AbortOnDropHandle;

    use super::super::metered::Metered;
    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    /// Far more than it takes to be left.
    const MANY: usize = 6 * SILENT_LOOKS as usize;
    const PING: [u8; 2] = [0x89, 0];
    const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];

    struct Seen {
        pulse: Arc<Pulse>,
        _driving: AbortOnDropHandle<()>,
    }

    impl Seen {
        /// A session whose peer is what is at the other end of the stream.
        async fn from(ours: DuplexStream) -> Self {
            let pulse = Arc::new(Pulse::default());
            let open = Arc::new(std::sync::atomic::AtomicBool::new(true));
            let ours = Metered::new(ours, 0, open, Arc::clone(&pulse));
            let limits = Limits::default();
            let config = Some(capnweb::ws::config(&limits));
            let socket = WebSocketStream::from_raw_socket(ours, Role::Server, config).await;
            let io = capnweb::ws::tungstenite(socket, &limits);
            let io = Watched::new(io, Arc::clone(&pulse), SOON);
            let (connection, driver) = Session::start(io, None, limits);
            let _driving = AbortOnDropHandle::new(tokio::spawn(async move {
                let _connection = connection;
                driver.await;
            }));
            Self { pulse, _driving }
        }

        /// Says `first`, then `each` at each ping; tells after how many pings
        /// it was left, if it was.
        async fn left_after(
            &self,
            io: &mut DuplexStream,
            first: &[u8],
            each: &[u8],
        ) -> Option<usize> {
            io.write_all(first).await.unwrap();
            let mut pings = 0;
            while pings < MANY {
                let mut frame = [0; 2];
                tokio::select! {
                    biased;
                    read = io.read_exact(&mut frame) => {
                        read.unwrap();
                        assert_eq!(frame, PING);
                    }
                    () = self.pulse.gone() => return Some(pings),
                }
                pings += 1;
                io.write_all(each).await.unwrap();
            }
            None
        }
    }

    #[tokio::test]
    async fn who_answers_pings_stays_however_idle() {
        let (ours, mut theirs) = tokio::io::duplex(16 * 1024);
        let seen = Seen::from(ours).await;
        assert_eq!(seen.left_after(&mut theirs, &[], &PONG).await, None);
    }

    #[tokio::test]
    async fn who_answers_nothing_is_left() {
        let (ours, mut theirs) = tokio::io::duplex(16 * 1024);
        let seen = Seen::from(ours).await;
        let pings = seen.left_after(&mut theirs, &[], &[]).await;
        assert_eq!(pings, Some(SILENT_LOOKS as usize - 1));
    }

    #[tokio::test]
    async fn who_does_not_even_read_is_left() {
        let (ours, _theirs) = tokio::io::duplex(1);
        let seen = Seen::from(ours).await;
        seen.pulse.gone().await;
    }

    /// The head of a masked text message.
    fn head(size: u64) -> Vec<u8> {
        [&[0x81, 0xff][..], &size.to_be_bytes(), &[0; 4]].concat()
    }

    #[tokio::test]
    async fn a_byte_now_and_then_is_no_sign_of_life() {
        let (ours, mut theirs) = tokio::io::duplex(16 * 1024);
        let seen = Seen::from(ours).await;
        let pings = seen.left_after(&mut theirs, &head(60_000), b"[").await;
        assert_eq!(pings, Some(SILENT_LOOKS as usize - 1));
    }

    #[tokio::test]
    async fn a_large_message_may_take_its_time() {
        let (ours, mut theirs) = tokio::io::duplex(16 * 1024);
        let seen = Seen::from(ours).await;
        let piece = vec![b' '; usize::try_from(MOVED).unwrap()];
        assert_eq!(
            seen.left_after(&mut theirs, &head(32 << 20), &piece).await,
            None
        );
    }
}
