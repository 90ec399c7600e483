//! The HTTP surface: the RPC endpoint `/api` by WebSocket and by POST, `/health` and `/metrics`.

mod batch;
mod budgets;
mod health;
mod metered;
mod metrics;
mod origin;
mod pulse;
mod socket;
mod strangers;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Options;
use crate::rpc::World;
use strangers::Strangers;

/// How long a connection may take for one request's head.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);
/// How long a connection may go on with requests that make no session.
const REQUESTS_WITHIN: Duration = Duration::from_secs(60);
/// How long to wait after a connection could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What every door shares.
#[derive(Clone)]
pub(crate) struct Doors(Arc<Shared>);

struct Shared {
    world: Arc<World>,
    allowed_hosts: Vec<String>,
    connections: Arc<Semaphore>,
    /// Connections that have made no session yet.
    handshakes: Strangers,
    /// Sessions without a key yet.
    unauthenticated: Strangers,
    /// How many sessions there may be.
    connections_max: usize,
    budgets: budgets::Budgets,
    /// Sessions accepted and requests refused since the start.
    accepted: AtomicU64,
    refused: AtomicU64,
    /// Whether sandboxes can start here.
    can_start: bool,
    stop: CancellationToken,
    sessions: TaskTracker,
}

impl Doors {
    pub(crate) fn new(
        world: Arc<World>,
        options: &Options,
        can_start: bool,
        stop: CancellationToken,
    ) -> Self {
        Self(Arc::new(Shared {
            world,
            allowed_hosts: options.allowed_hosts.clone(),
            connections: Arc::new(Semaphore::new(options.connections)),
            handshakes: Strangers::new(options.connections),
            unauthenticated: Strangers::new(options.unauthenticated),
            connections_max: options.connections,
            budgets: budgets::Budgets::default(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            can_start,
            stop,
            sessions: TaskTracker::new(),
        }))
    }
}

/// Serves until told to stop, then ends every session.
pub(crate) async fn serve(listener: TcpListener, doors: Doors, stop: CancellationToken) {
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, peer)) => {
                // Small frames go out at once: every call is one.
                let tuned = stream
                    .set_nodelay(true)
                    .and_then(|()| Ok(keep_alive(&stream)?));
                if let Err(error) = tuned {
                    tracing::debug!(%error, "a connection was not tuned");
                }
                let heard = hear(stream, peer, doors.clone());
                let heard = stop.clone().run_until_cancelled_owned(heard);
                doors.0.sessions.spawn(heard);
            }
            // Of one connection, or out of descriptors until another ends.
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                doors.0.handshakes.push_out();
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    let sessions = &doors.0.sessions;
    sessions.close();
    sessions.wait().await;
}

/// Answers requests until one of them becomes a session, which goes on alone.
async fn hear(stream: TcpStream, peer: SocketAddr, doors: Doors) {
    let busy = batch::Busy::default();
    let Some(place) = doors.0.handshakes.enter(busy.clone()) else {
        return;
    };
    let working = busy.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let doors = doors.clone();
        request.extensions_mut().insert(working.clone());
        async move { Ok::<_, Infallible>(answer(&doors, peer, request.map(Body::new)).await) }
    });
    let heard = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_WITHIN)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // What keeps sending must not stay for ever either, unless it waits for its
    // own calls.
    let too_long = async {
        tokio::time::sleep(REQUESTS_WITHIN).await;
        while !busy.is_idle() {
            tokio::time::sleep(REQUEST_WITHIN).await;
        }
    };
    tokio::select! {
        heard = heard => if let Err(error) = heard {
            tracing::debug!(%error, "a connection ended");
        },
        () = too_long => {}
        () = place.pushed_out() => {}
    }
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

async fn answer(doors: &Doors, peer: SocketAddr, request: Request) -> Response {
    let shared = &doors.0;
    let response = match origin::check(request.headers(), &shared.allowed_hosts) {
        Err(refusal) => *refusal,
        Ok(()) => match (request.method().as_str(), request.uri().path()) {
            ("POST", "/api") => {
                shared.accepted.fetch_add(1, Ordering::Relaxed);
                batch::answer(shared, request).await
            }
            (_, "/api") => socket::upgrade(doors.clone(), peer, request),
            ("GET", "/health") => return health::answer(shared).await,
            ("GET", "/metrics") => metrics::answer(shared, request.headers()).await,
            _ => origin::plain(
                404,
                "hutch serves /api by WebSocket or POST, GET /health and GET /metrics\n",
            ),
        },
    };
    if response.status().is_client_error() || response.status().is_server_error() {
        shared.refused.fetch_add(1, Ordering::Relaxed);
    }
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use crate::{Options, Server};

    #[tokio::test(flavor = "multi_thread")]
    async fn what_never_ends_its_request_takes_no_room_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::new(dir.path().join("data"));
        options.listen = ([127, 0, 0, 1], 0).into();
        options.sandboxd = Some("/nonexistent".into());
        options.connections = 2;
        let server = Server::start(options).await.unwrap();
        let address = server.address();
        let mut silent = Vec::new();
        for _ in 0..4 {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /api HTTP/1.1\r\nHo").await.unwrap();
            silent.push(stream);
        }
        let asking = async {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let limit = super::REQUEST_WITHIN * 4;
        let answer = tokio::time::timeout(limit, asking).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        for mut stream in silent {
            let mut rest = Vec::new();
            let ended = tokio::time::timeout(limit, stream.read_to_end(&mut rest)).await;
            assert!(ended.is_ok(), "a silent connection was kept");
        }
        server.stop().await;
    }
}
