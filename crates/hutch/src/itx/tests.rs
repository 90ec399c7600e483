//! Scripts against a peer that is joined over a real session; only its objects
//! are made up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod calls;
mod fake;
mod globals;
mod streams;
mod values;

use super::{Limits, Outcome, Script, ScriptError, run};
use capnweb::{Connection, Session, ws};
use fake::Fake;
use serde_json::Value as Json;
use std::sync::Arc;

/// Joins a fake peer; the connection's main object is its `itx`.
async fn join(fake: Arc<Fake>) -> Connection {
    let limits = capnweb::Limits::default();
    let (near, far) = tokio::io::duplex(1 << 20);
    let served = tokio::spawn(async move { ws::accept(far, &limits).await.unwrap() });
    let near = ws::client(near, "ws://fake/api", &limits).await.unwrap();
    let (kept, driver) = Session::start(served.await.unwrap(), Some(fake), limits);
    tokio::spawn(async move {
        driver.await;
        drop(kept);
    });
    let (connection, driver) = Session::start(near, None, limits);
    tokio::spawn(driver);
    connection
}

async fn outcome_with(fake: Arc<Fake>, source: &str) -> Outcome {
    let connection = join(fake).await;
    let script = Script {
        name: "test".to_owned(),
        source: source.to_owned(),
        indent: 0,
    };
    run(script, connection.main(), Limits::default()).1.await
}

async fn value(source: &str) -> Json {
    match outcome_with(Arc::default(), source).await {
        Outcome::Value { json, .. } => serde_json::from_str(&json).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn error(source: &str) -> ScriptError {
    match outcome_with(Arc::default(), source).await {
        Outcome::Threw(error) => *error,
        other => panic!("{other:?}"),
    }
}
