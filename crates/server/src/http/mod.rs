//! The HTTP surface: one WebSocket endpoint, `/api`.

mod metered;
mod origin;
mod socket;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Options;
use crate::rpc::World;

/// What every door shares.
#[derive(Clone)]
pub(crate) struct Doors(Arc<Shared>);

struct Shared {
    world: Arc<World>,
    allowed_hosts: Vec<String>,
    connections: Arc<Semaphore>,
    unauthenticated: Arc<Semaphore>,
    stop: CancellationToken,
    sessions: TaskTracker,
}

impl Doors {
    pub(crate) fn new(world: Arc<World>, options: &Options, stop: CancellationToken) -> Self {
        Self(Arc::new(Shared {
            world,
            allowed_hosts: options.allowed_hosts.clone(),
            connections: Arc::new(Semaphore::new(options.connections)),
            unauthenticated: Arc::new(Semaphore::new(options.unauthenticated)),
            stop,
            sessions: TaskTracker::new(),
        }))
    }
}

/// Serves until told to stop, then ends every session.
pub(crate) async fn serve(listener: TcpListener, doors: Doors, stop: CancellationToken) {
    let sessions = doors.0.sessions.clone();
    let router = Router::new()
        .route("/api", any(api))
        .fallback(unknown)
        .with_state(doors);
    // Small frames go out at once: every call is one.
    let listener = listener.tap_io(|stream| {
        let tuned = stream
            .set_nodelay(true)
            .and_then(|()| Ok(keep_alive(stream)?));
        if let Err(error) = tuned {
            tracing::debug!(%error, "a connection was not tuned");
        }
    });
    let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "serving ended");
    }
    sessions.close();
    sessions.wait().await;
}

/// A caller whose machine vanished without a word would otherwise hold its
/// commands, and its sandbox awake, for ever.
fn keep_alive(stream: &tokio::net::TcpStream) -> rustix::io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(30))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(stream, 3)
}

async fn api(State(doors): State<Doors>, request: Request) -> Response {
    if let Err(refusal) = origin::check(request.headers(), &doors.0.allowed_hosts) {
        return *refusal;
    }
    socket::upgrade(doors, request)
}

async fn unknown(State(doors): State<Doors>, request: Request) -> Response {
    if let Err(refusal) = origin::check(request.headers(), &doors.0.allowed_hosts) {
        return *refusal;
    }
    origin::plain(404, "hutch serves one endpoint, the WebSocket /api\n")
}
