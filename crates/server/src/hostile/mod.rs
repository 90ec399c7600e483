//! A sandbox whose daemon is hostile: it speaks the wire and does what it likes.
//!
//! The server is whole but for the driver, whose instances lead to a double that
//! misbehaves by the name of its sandbox.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod boots;
mod double;
mod driver;
mod excess;

use std::sync::Arc;
use std::time::Duration;

use capnweb::{Connection, ErrorValue, Limits, Session, Stub, Value};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::task::AbortOnDropHandle;

use crate::{Options, Server};
use double::Log;
use driver::HostileDriver;

const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    _place: TempDir,
    log: Log,
    connection: Connection,
    itx: Stub,
    _driver: AbortOnDropHandle<()>,
    server: Server,
}

impl World {
    async fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut options = Options::new(place.path().join("data"));
        options.listen = ([127, 0, 0, 1], 0).into();
        let log = Log::default();
        let driver = Arc::new(HostileDriver::new(log.clone()));
        let server = Server::start_on(options, Some(driver)).await.unwrap();
        let token = std::fs::read_to_string(place.path().join("data/admin.key")).unwrap();
        let io = tokio::net::TcpStream::connect(server.address())
            .await
            .unwrap();
        let limits = Limits::default();
        let url = format!("ws://{}/api", server.address());
        let socket = capnweb::ws::client(io, &url, &limits).await.unwrap();
        let (connection, driver) = Session::start(socket, None, limits);
        let driver = AbortOnDropHandle::new(tokio::spawn(async move {
            driver.await;
        }));
        let credentials = json!({"type": "bearer", "token": token.trim()});
        let session = connection
            .main()
            .call("authenticate", vec![Value::from_json(credentials)])
            .stub();
        let itx = session.call("projects.get", vec!["default".into()]).stub();
        Self {
            _place: place,
            log,
            connection,
            itx,
            _driver: driver,
            server,
        }
    }

    fn handle(&self, name: &str) -> Stub {
        let path = format!("/sandboxes/{name}");
        self.itx.call("sandboxes.get", vec![path.into()]).stub()
    }

    async fn create(&self, name: &str) -> Stub {
        let handle = self.handle(name);
        within(handle.call("create", vec![Value::from_json(json!({}))]))
            .await
            .unwrap();
        handle
    }

    /// Runs one command in a hostile sandbox of its own, and sees that another
    /// sandbox and the same connection still work.
    async fn exec(&self, name: &str) -> Result<Value, ErrorValue> {
        let sandbox = self.create(name).await;
        let result = within(sandbox.call("exec", vec!["true".into()])).await;
        self.others_work().await;
        assert!(self.log.execs(name) <= 1, "{name}: a call was made again");
        result
    }

    async fn others_work(&self) {
        let result = within(self.handle("good").call("exec", vec!["true".into()])).await;
        assert_eq!(
            result.unwrap().get("stdout").and_then(Value::as_str),
            Some("ok")
        );
        assert!(!self.connection.is_closed());
    }
}

/// Says which of many waits it was that had no end.
#[track_caller]
fn within<F: IntoFuture>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    let limited = tokio::time::timeout(PATIENCE, future.into_future());
    async move {
        match limited.await {
            Ok(output) => output,
            Err(_) => panic!("what {caller} waits for took too long"),
        }
    }
}

fn code(result: Result<Value, ErrorValue>) -> (String, serde_json::Value) {
    let error = result.unwrap_err();
    let details = error.details().map(|details| details.to_json().unwrap());
    (
        error.code().unwrap_or_default().to_owned(),
        details.unwrap_or_default(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_errors_are_the_sandboxs_word_and_nothing_else() {
    let world = World::new().await;
    world.create("good").await;
    for (name, expected) in [
        ("forged-disconnected", "RPC_TRANSPORT_ERROR"),
        ("forged-unauthenticated", "UNKNOWN_ERROR"),
        ("forged-interrupted", "UNKNOWN_ERROR"),
        ("forged-text", "UNKNOWN_ERROR"),
    ] {
        let (code, details) = code(world.exec(name).await);
        assert_eq!(code, expected, "{name}");
        assert_eq!(details["origin"], "sandbox", "{name}");
    }
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_breach_of_the_wire_ends_the_call_and_the_machine_alone() {
    let world = World::new().await;
    world.create("good").await;
    for name in [
        "closes",
        "closes-in-a-frame",
        "aborts",
        "malformed",
        "binary",
        "huge-frame",
        "releases-too-much",
        "releases-the-unknown",
        "pulls-the-unknown",
        "floods-pipes",
        "floods-pushes",
        "exports-forever",
    ] {
        let (code, details) = code(world.exec(name).await);
        assert_eq!(code, "OPERATION_INTERRUPTED", "{name} {details}");
        assert_eq!(details["admitted"], true, "{name}");
        assert_eq!(world.log.execs(name), 1, "{name}");
    }
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_answers_are_taken_once_and_deep_ones_refused() {
    let world = World::new().await;
    world.create("good").await;
    let result = world.exec("answers-twice").await.unwrap();
    assert_eq!(result.get("stdout").and_then(Value::as_str), Some("first"));
    let result = world.exec("answers-others").await.unwrap();
    assert_eq!(result.get("stdout").and_then(Value::as_str), Some("ok"));
    let (code, _) = code(world.exec("nests-deeply").await);
    assert_eq!(code, "PAYLOAD_TOO_LARGE");
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_the_host_is_reached_from_inside() {
    let world = World::new().await;
    world.create("good").await;
    // It calls, maps and reads the host's main before it answers.
    world.exec("calls-the-host").await.unwrap();
    let answers = world.log.frames("calls-the-host");
    for id in 1..=5 {
        let rejected = format!(
            "[\"reject\",{id},[\"error\",\"Error\",\"This connection has no main object.\"]]"
        );
        assert!(answers.contains(&rejected), "{id}: {answers:?}");
    }
    // It answers with what is the host's own.
    for name in ["gives-the-host-back", "gives-a-host-call-back"] {
        let result = world.exec(name).await;
        assert!(result.is_err(), "{name}: {result:?}");
    }
    // A function of the client that it was given may be called, and nothing else of it.
    let sandbox = world.create("keeps-callbacks").await;
    let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = seen.clone();
    let callback = Stub::function(move |args| {
        assert!(args.iter().all(|arg| arg.as_stub().is_none()));
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async { Ok(1.into()) }
    });
    let result = within(sandbox.call("exec", vec!["true".into(), callback.into()])).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 1);
    let answers = world.log.frames("keeps-callbacks");
    assert!(
        answers.iter().any(|frame| frame.contains("FORBIDDEN")),
        "{answers:?}"
    );
    world.others_work().await;
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_misbehave_fail_alone() {
    let world = World::new().await;
    world.create("good").await;
    let read = |value: Result<Value, ErrorValue>| match value.unwrap() {
        Value::Readable(stream) => stream,
        other => panic!("no stream: {other:?}"),
    };
    // Never ends: its reader may go.
    let mut endless = read(world.exec("streams-forever").await);
    assert!(within(endless.next()).await.unwrap().is_ok());
    drop(endless);
    // Has a capability in it.
    let mut smuggling = read(world.exec("streams-a-capability").await);
    let error = within(smuggling.next()).await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some("FORBIDDEN"));
    world.others_work().await;
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_never_answers_holds_only_its_callers() {
    let world = World::new().await;
    world.create("good").await;
    for name in ["silent", "slowloris", "promises-nothing"] {
        let sandbox = world.create(name).await;
        let call = sandbox.call("exec", vec!["true".into()]).ask();
        while world.log.execs(name) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.others_work().await;
        drop(call);
        within(sandbox.call("destroy", vec![])).await.unwrap();
    }
    world.server.stop().await;
}
