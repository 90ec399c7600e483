//! Accepting connections on an inherited socket.

use capnweb::{Limits, Session, Target, ws};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;

/// Where RPC is served.
const PATH: &str = "/rpc";
/// Connections of one socket at one time.
const CONNECTIONS_MAX: usize = 256;
/// How long a peer may take for its handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait after a failed accept, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `main` to everyone who connects, for ever.
pub async fn serve(listener: UnixListener, main: Arc<dyn Target>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let io = match listener.accept().await {
            Ok((io, _)) => io,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let main = Arc::clone(&main);
        // Ends with its connection.
        tokio::spawn(async move {
            connection(io, main).await;
            drop(slot);
        });
    }
}

async fn connection(io: UnixStream, main: Arc<dyn Target>) {
    let limits = Limits::default();
    let handshake = ws::accept_with(io, check, &limits);
    let socket = match tokio::time::timeout(HANDSHAKE_LIMIT, handshake).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(error)) => return tracing::debug!(%error, "handshake failed"),
        Err(_) => return tracing::debug!("handshake took too long"),
    };
    // A side that only serves keeps its connection for as long as it serves.
    let (_connection, driver) = Session::start(socket, Some(main), limits);
    let reason = driver.await;
    tracing::debug!(?reason, "connection ended");
}

#[allow(clippy::result_large_err, reason = "the handshake's own type")]
fn check(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    if request.uri().path() == PATH {
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(Some(format!("RPC is at {PATH}\n")));
    *refusal.status_mut() = StatusCode::NOT_FOUND;
    Err(refusal)
}
