//! `GET /health`: whether this server can do its work.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hutch_streams::{RecordId, Store};
use serde_json::json;

use super::Shared;

/// How long the store may take before it counts as ill.
const STORE_WITHIN: Duration = Duration::from_secs(2);

/// 200 with `{ok: true, …}`, or 503 with `{ok: false, reason, …}`. Anybody may
/// ask, so it names nothing that is ours.
pub(super) async fn answer(shared: &Arc<Shared>) -> Response {
    let reason = illness(&shared.world.store).await;
    let body = json!({
        "ok": reason.is_none(),
        "version": env!("CARGO_PKG_VERSION"),
        "sandboxes": if shared.can_start { "available" } else { "unavailable" },
        "reason": reason,
    });
    let mut response = Response::new(Body::from(format!("{body}\n")));
    if reason.is_some() {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    let fresh = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, fresh);
    response
}

/// What keeps the store from its work, in words fit for strangers.
async fn illness(store: &Store) -> Option<&'static str> {
    // Reading may go on long after writing has stopped, so both are asked.
    if store.writable().is_err() {
        return Some("the event store cannot be written");
    }
    let id = RecordId::deployment("server", "generation");
    match tokio::time::timeout(STORE_WITHIN, store.record(&id)).await {
        Ok(Ok(_)) => None,
        Ok(Err(_)) => Some("the event store cannot be read"),
        Err(_) => Some("the event store does not answer"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_store_that_only_reads_is_ill() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        assert_eq!(illness(&store).await, None);
        store.close().await;
        let id = RecordId::deployment("server", "generation");
        assert!(store.record(&id).await.is_ok(), "it still reads");
        let reason = illness(&store).await;
        assert_eq!(reason, Some("the event store cannot be written"));
    }
}
