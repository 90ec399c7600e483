//! `GET /health`: whether this server can do its work.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hutch_streams::RecordId;
use serde_json::json;

use super::Shared;

/// How long the store may take before it counts as ill.
const STORE_WITHIN: Duration = Duration::from_secs(2);

/// 200 with `{ok: true, …}`, or 503 with `{ok: false, reason, …}`. Anybody may
/// ask, so it names nothing that is ours.
pub(super) async fn answer(shared: &Arc<Shared>) -> Response {
    let id = RecordId::deployment("server", "generation");
    let store = tokio::time::timeout(STORE_WITHIN, shared.world.store.record(&id)).await;
    let reason = match store {
        Ok(Ok(_)) => None,
        Ok(Err(_)) => Some("the event store cannot be read"),
        Err(_) => Some("the event store does not answer"),
    };
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
