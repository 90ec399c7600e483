//! WebSockets as transports.
//!
//! tokio-tungstenite's is one by [`client`] or [`accept`]; any other (axum's,
//! say) by [`adapt`] with two functions.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{Callback, NoCallback};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, error::CapacityError};

use crate::limits::Limits;
use crate::transport::{Frame, Transport, TransportError};

/// The settings of a WebSocket that accepts messages up to the limits.
pub fn config(limits: &Limits) -> WebSocketConfig {
    WebSocketConfig::default()
        // The buffer is cleared at each read, which most messages do not fill.
        .read_buffer_size(32 * 1024)
        .max_message_size(Some(limits.receive_bytes))
        .max_frame_size(Some(limits.receive_bytes))
        .max_write_buffer_size(usize::MAX)
}

/// Opens the client side over a connected byte stream, such as a Unix socket.
/// `url` is `ws://host/path`.
pub async fn client<S>(io: S, url: &str, limits: &Limits) -> Result<impl Transport + use<S>, Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (socket, _) =
        tokio_tungstenite::client_async_with_config(url, io, Some(config(limits))).await?;
    Ok(tungstenite(socket, limits))
}

/// Accepts the server side over a connected byte stream.
pub async fn accept<S>(io: S, limits: &Limits) -> Result<impl Transport + use<S>, Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    accept_with(io, NoCallback, limits).await
}

/// As [`accept`], with a callback that may look at the request and refuse it.
pub async fn accept_with<S, C>(
    io: S,
    callback: C,
    limits: &Limits,
) -> Result<impl Transport + use<S, C>, Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    C: Callback + Unpin,
{
    let socket =
        tokio_tungstenite::accept_hdr_async_with_config(io, callback, Some(config(limits))).await?;
    Ok(tungstenite(socket, limits))
}

/// A socket of tokio-tungstenite, of either side, opened with [`config`].
pub fn tungstenite<S>(socket: WebSocketStream<S>, limits: &Limits) -> impl Transport + use<S>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let most = limits.receive_bytes;
    adapt(socket, decode, encode, move |error| match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => TransportError::TooLarge(most),
        other => TransportError::Failed(other.to_string()),
    })
}

fn decode(message: Message) -> Frame {
    match message {
        Message::Text(text) => Frame::Text(text),
        Message::Binary(_) => Frame::Binary,
        Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Frame::Control,
        Message::Close(frame) => match frame {
            Some(frame) => Frame::Close(frame.code.into(), frame.reason.to_string()),
            None => Frame::Close(1005, String::new()),
        },
    }
}

fn encode(frame: Frame) -> Message {
    match frame {
        Frame::Text(text) => Message::Text(text),
        Frame::Binary => Message::Binary(bytes::Bytes::new()),
        Frame::Control => Message::Ping(bytes::Bytes::new()),
        Frame::Close(code, reason) => Message::Close(Some(CloseFrame {
            code: CloseCode::from(code),
            reason: reason.into(),
        })),
    }
}

/// Any socket that is a stream and a sink of messages.
///
/// For axum: `Frame::Text` from `Message::Text(text)` is
/// `Text::try_from(Bytes::from(text))`, the way back
/// `Utf8Bytes::try_from(Bytes::from(text))`; neither copies. Set the socket's
/// `max_message_size` and `max_frame_size` to [`Limits::receive_bytes`].
pub fn adapt<S, M, E>(
    socket: S,
    decode: impl Fn(M) -> Frame + Send + Unpin + 'static,
    encode: impl Fn(Frame) -> M + Send + Unpin + 'static,
    error: impl Fn(E) -> TransportError + Send + Unpin + 'static,
) -> impl Transport
where
    S: Stream<Item = Result<M, E>> + Sink<M, Error = E> + Send + Unpin + 'static,
    M: 'static,
    E: 'static,
{
    Adapter {
        socket,
        decode,
        encode,
        error,
    }
}

struct Adapter<S, D, C, F> {
    socket: S,
    decode: D,
    encode: C,
    error: F,
}

impl<S, M, E, D, C, F> Stream for Adapter<S, D, C, F>
where
    S: Stream<Item = Result<M, E>> + Unpin,
    D: Fn(M) -> Frame + Unpin,
    C: Unpin,
    F: Fn(E) -> TransportError + Unpin,
{
    type Item = Result<Frame, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        this.socket
            .poll_next_unpin(cx)
            .map(|next| next.map(|result| result.map(&this.decode).map_err(&this.error)))
    }
}

impl<S, M, E, D, C, F> Sink<Frame> for Adapter<S, D, C, F>
where
    S: Sink<M, Error = E> + Unpin,
    D: Unpin,
    C: Fn(Frame) -> M + Unpin,
    F: Fn(E) -> TransportError + Unpin,
{
    type Error = TransportError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let this = &mut *self;
        this.socket.poll_ready_unpin(cx).map_err(&this.error)
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Frame) -> Result<(), TransportError> {
        let this = &mut *self;
        this.socket
            .start_send_unpin((this.encode)(frame))
            .map_err(&this.error)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let this = &mut *self;
        this.socket.poll_flush_unpin(cx).map_err(&this.error)
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let this = &mut *self;
        this.socket.poll_close_unpin(cx).map_err(&this.error)
    }
}
