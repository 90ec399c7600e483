//! From an HTTP request to an RPC session.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use capnweb::{CloseReason, Connection, ErrorValue, Limits, Session};
use hutch_protocol::limits::{UNAUTHENTICATED_BYTES_MAX, UNAUTHENTICATED_CALLS_MAX};
use hutch_protocol::{ApiError, ErrorCode};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tracing::Instrument;
use tracing::field::Empty;

use super::batch::{Busy, FULL};
use super::metered::Metered;
use super::origin::plain;
use super::pulse::{LOOK_EVERY, Pulse, Watched};
use super::strangers::Place;
use super::{Doors, Shared};
use crate::keys::{self, KeyName, Principal};
use crate::rpc::{Entry, error_value};

/// How long a connection may stay without authentication.
pub(super) const AUTHENTICATE_WITHIN: Duration = Duration::from_secs(5);

/// Answers 101 and starts a session, or says why not.
pub(super) fn upgrade(doors: Doors, peer: SocketAddr, mut request: Request) -> Response {
    let Some(key) = websocket_key(request.headers()) else {
        return plain(
            426,
            "/api is an RPC endpoint; connect a WebSocket or POST a batch with an RPC client\n",
        );
    };
    let accept = derive_accept_key(key.as_bytes());
    let shared = &doors.0;
    let open = Arc::clone(&shared.connections).try_acquire_owned();
    let place = shared.unauthenticated.enter(Busy::default());
    let (Ok(open), Some(place)) = (open, place) else {
        return plain(503, FULL);
    };
    shared.accepted.fetch_add(1, Ordering::Relaxed);
    let upgraded = hyper::upgrade::on(&mut request);
    let shared = Arc::clone(shared);
    let connection = uuid::Uuid::new_v4().simple();
    let span = tracing::error_span!("connection", %connection, %peer, key = Empty);
    let serving = async move {
        let begun = Instant::now();
        match upgraded.await {
            Ok(stream) => session(&shared, TokioIo::new(stream), place).await,
            Err(error) => tracing::debug!(%error, "a connection broke in the handshake"),
        }
        tracing::info!(seconds = begun.elapsed().as_secs_f64(), "connection closed");
        drop(open);
    };
    doors.0.sessions.spawn(serving.instrument(span));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

/// The client's key, if this is a WebSocket handshake of version 13.
fn websocket_key(headers: &HeaderMap) -> Option<&str> {
    let has = |name: header::HeaderName, token: &str| {
        let values = headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok());
        values
            .flat_map(|value| value.split(','))
            .any(|part| part.trim().eq_ignore_ascii_case(token))
    };
    let handshake = has(header::CONNECTION, "upgrade")
        && has(header::UPGRADE, "websocket")
        && has(header::SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY)?.to_str().ok()?;
    (handshake && !key.is_empty()).then_some(key)
}

/// The pipelined calls, `authenticate` itself, and what the frames weigh.
pub(super) fn unauthenticated_limits() -> Limits {
    let mut narrow = Limits::default();
    narrow.pending_calls = UNAUTHENTICATED_CALLS_MAX + 1;
    narrow.pending_bytes = UNAUTHENTICATED_BYTES_MAX;
    narrow.receive_bytes = UNAUTHENTICATED_BYTES_MAX + 64 * 1024;
    narrow.exports = 2 * UNAUTHENTICATED_CALLS_MAX;
    narrow.imports = 2 * UNAUTHENTICATED_CALLS_MAX;
    narrow
}

async fn session<S>(shared: &Shared, stream: S, place: Place)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let full = Limits::default();
    let narrow = unauthenticated_limits();

    let open = Arc::new(AtomicBool::new(false));
    let pulse = Arc::new(Pulse::default());
    let most = 2 * UNAUTHENTICATED_BYTES_MAX;
    let stream = Metered::new(stream, most, Arc::clone(&open), Arc::clone(&pulse));
    let config = Some(capnweb::ws::config(&full));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, config).await;
    let entry = Entry::new(Arc::clone(&shared.world), open);
    let transport = capnweb::ws::tungstenite(socket, &full);
    let transport = Watched::new(transport, Arc::clone(&pulse), LOOK_EVERY);
    let (connection, driver) = Session::start(transport, Some(entry.clone()), narrow);
    tokio::pin!(driver);

    tokio::select! {
        _ = &mut driver => {}
        principal = entry.authenticated() => {
            let key = principal.key.to_string();
            tracing::Span::current().record("key", key);
            tracing::info!("connection opened");
            connection.set_limits(full);
            connection.share(&shared.budgets.of(&principal.key));
            drop(place);
            serve(shared, connection, driver, principal, &pulse).await;
        }
        () = tokio::time::sleep(AUTHENTICATE_WITHIN) => hang_up(connection, driver, late()).await,
        // Without a word: that would take time, and there are many.
        () = place.pushed_out() => {}
        () = shared.stop.cancelled() => hang_up(connection, driver, stopping(false)).await,
    }
}

/// Serves a caller until it goes or falls silent, its key ends or the server stops.
async fn serve<D>(
    shared: &Shared,
    connection: Connection,
    mut driver: Pin<&mut D>,
    principal: Principal,
    pulse: &Pulse,
) where
    D: Future<Output = CloseReason>,
{
    let noted = async {
        shared.world.keys.used(&principal.key).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        reason = &mut driver => tracing::debug!(?reason, "a session ended"),
        () = noted => {}
        why = principal.ended() => {
            let KeyName::Stored(key) = &principal.key else { return };
            hang_up(connection, driver, error_value(keys::ended(key, why))).await;
        }
        () = pulse.gone() => {
            tracing::info!("nobody answers any more");
            hang_up(connection, driver, silent()).await;
        }
        // One reason for every open call, and any of them may have run.
        () = shared.stop.cancelled() => hang_up(connection, driver, stopping(true)).await,
    }
}

/// Ends a session for a reason that the peer hears, if it listens at all.
async fn hang_up<D>(connection: Connection, driver: Pin<&mut D>, reason: ErrorValue)
where
    D: Future<Output = CloseReason>,
{
    connection.abort(reason);
    let _ = tokio::time::timeout(Duration::from_secs(1), driver).await;
}

fn stopping(admitted: bool) -> ErrorValue {
    error_value(ApiError::interrupted(
        "the session",
        "the server is stopping",
        admitted,
    ))
}

/// For one that was only held up, and looks again.
fn silent() -> ErrorValue {
    error_value(ApiError::interrupted(
        "the session",
        "the client gave no sign of life for two minutes",
        true,
    ))
}

fn late() -> ErrorValue {
    error_value(ApiError::new(
        ErrorCode::Unauthenticated,
        "nobody authenticated within 5 s; call authenticate({type: \"bearer\", token}) first",
    ))
}
