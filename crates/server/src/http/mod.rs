//! The HTTP surface: one WebSocket endpoint, `/api`.

mod metered;
mod origin;
mod socket;

use std::sync::Arc;

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
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
        }
    });
    let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "serving ended");
    }
    sessions.close();
    sessions.wait().await;
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
