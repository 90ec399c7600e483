//! RPC sessions that are one request, `POST /api`.
//!
//! The same objects, budgets and deadlines as on a WebSocket. The calls end
//! with the request: when its sender goes away, the future of [`answer`] is
//! dropped, and with it the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use capnweb::batch::BatchServer;
use capnweb::{Connection, Limits};
use futures_util::{FutureExt, StreamExt};
use hutch_protocol::limits::UNAUTHENTICATED_BYTES_MAX;
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::origin::plain;
use super::socket::{AUTHENTICATE_WITHIN, unauthenticated_limits};
use super::strangers::Place;
use crate::keys::Principal;
use crate::rpc::Entry;

/// Batches of one connection whose callers are known: it may take its time.
#[derive(Clone, Debug, Default)]
pub(super) struct Busy(Arc<AtomicUsize>);

pub(super) struct Working(Busy);

impl Busy {
    pub(super) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    pub(super) fn begin(&self) -> Working {
        self.0.fetch_add(1, Ordering::Relaxed);
        Working(self.clone())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

const LATE: &str = "nobody authenticated within 5 s; make authenticate({type: \"bearer\", token}) the first call of the batch\n";

/// What one hears for whom there is no room.
pub(super) const FULL: &str = "too many connections are open; try again shortly\n";

/// Resolves once a newer caller has the place of one that is not known yet.
async fn pushed_out(place: Option<&Place>) {
    match place {
        Some(place) => place.pushed_out().await,
        None => std::future::pending().await,
    }
}

/// Runs the calls of a batch and answers once every result that it asked for is
/// there.
pub(super) async fn answer(shared: &Shared, request: Request) -> Response {
    let open = Arc::clone(&shared.connections).try_acquire_owned();
    let place = shared.unauthenticated.enter(Busy::default());
    let (Ok(_open), Some(place)) = (open, place) else {
        return plain(503, FULL);
    };
    let (head, body) = request.into_parts();
    let busy = head.extensions.get::<Busy>().cloned().unwrap_or_default();
    let entry = Entry::new(Arc::clone(&shared.world), Arc::new(AtomicBool::new(false)));
    let (connection, batch) = BatchServer::start(Some(entry.clone()), unauthenticated_limits());
    let mut caller = Caller {
        shared,
        entry,
        connection,
        deadline: Instant::now() + AUTHENTICATE_WITHIN,
        known: None,
        place: Some(place),
    };
    let mut batch = match caller.take(batch, body).await {
        Ok(batch) => batch,
        Err(refusal) => return *refusal,
    };
    // The last message needs no end of line.
    batch.feed(b"\n");
    caller.step(&mut batch);
    let Some(principal) = caller.known else {
        return tokio::select! {
            answer = batch.finish() => messages(answer),
            () = sleep_until(caller.deadline) => plain(401, LATE),
            () = pushed_out(caller.place.as_ref()) => plain(503, FULL),
        };
    };
    let _working = busy.begin();
    shared.world.keys.used(&principal.key).await;
    tokio::select! {
        answer = batch.finish() => messages(answer),
        _ = principal.ended() => plain(401, "the key was revoked or has expired\n"),
        () = shared.stop.cancelled() => {
            plain(503, "the server is stopping; calls of this batch may have run\n")
        }
    }
}

/// Whoever sends the batch.
struct Caller<'a> {
    shared: &'a Shared,
    entry: Arc<Entry>,
    connection: Connection,
    deadline: Instant,
    known: Option<Principal>,
    /// Until it is known.
    place: Option<Place>,
}

impl Caller<'_> {
    /// Takes the body in, as much as the sender may send.
    async fn take(
        &mut self,
        mut batch: BatchServer,
        body: Body,
    ) -> Result<BatchServer, Box<Response>> {
        let refuse = |status, text| Err(Box::new(plain(status, text)));
        let mut body = body.into_data_stream();
        let mut taken = 0_usize;
        loop {
            let part = tokio::select! {
                part = body.next() => part,
                () = sleep_until(self.deadline), if self.known.is_none() => return refuse(401, LATE),
                () = pushed_out(self.place.as_ref()) => return refuse(503, FULL),
                () = self.shared.stop.cancelled() => return refuse(503, "the server is stopping\n"),
            };
            let part = match part {
                None => return Ok(batch),
                Some(Err(_)) => return refuse(400, "the request broke off\n"),
                Some(Ok(part)) => part,
            };
            taken = taken.saturating_add(part.len());
            batch.feed(&part);
            self.step(&mut batch);
            if self.known.is_none() && taken > 2 * UNAUTHENTICATED_BYTES_MAX {
                return refuse(413, "too much before authentication\n");
            }
            if self.connection.is_closed() {
                // What it was ended for is in the answer.
                return Ok(batch);
            }
        }
    }

    /// Runs what is there; with the full limits as soon as the caller is known.
    fn step(&mut self, batch: &mut BatchServer) {
        while batch.step() {
            if self.known.is_none()
                && let Some(principal) = self.entry.authenticated().now_or_never()
            {
                self.connection.set_limits(Limits::default());
                self.connection
                    .share(&self.shared.budgets.of(&principal.key));
                self.known = Some(principal);
                self.place = None;
            }
        }
    }
}

fn messages(answer: String) -> Response {
    let mut response = Response::new(Body::from(answer));
    *response.status_mut() = StatusCode::OK;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
