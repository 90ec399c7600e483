//! What carries the messages.

use futures_util::{Sink, Stream};

/// The text of one message: bytes known to be UTF-8, cheap to clone.
pub use tokio_tungstenite::tungstenite::Utf8Bytes as Text;

/// One WebSocket frame as the session sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// One message.
    Text(Text),
    /// Never sent; received, it ends the session.
    Binary,
    /// A ping or pong. The transport answers pings itself.
    Control,
    /// The end, with a status and a reason of at most 123 bytes.
    Close(u16, String),
}

/// The transport failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransportError {
    /// A received frame is larger than the transport accepts.
    #[error("the peer sent a frame larger than {0} bytes")]
    TooLarge(usize),
    /// Anything else; the peer is gone.
    #[error("{0}")]
    Failed(String),
}

/// A WebSocket after its handshake. The [`ws`](crate::ws) module has those of
/// tokio-tungstenite and of anything alike.
pub trait Transport:
    Stream<Item = Result<Frame, TransportError>>
    + Sink<Frame, Error = TransportError>
    + Send
    + Unpin
    + 'static
{
}

impl<T> Transport for T where
    T: Stream<Item = Result<Frame, TransportError>>
        + Sink<Frame, Error = TransportError>
        + Send
        + Unpin
        + 'static
{
}
