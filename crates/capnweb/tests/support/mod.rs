//! Two ends of a session over an in-memory WebSocket.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use capnweb::{
    CallFuture, CloseReason, Connection, ErrorValue, Limits, Path, Session, Stub, Target, Value,
    display_path, ws,
};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

pub const PATIENCE: Duration = Duration::from_secs(20);

/// A target from a closure over path and arguments.
pub struct Methods<F>(pub F);

impl<F, R> Target for Methods<F>
where
    F: Fn(String, Vec<Value>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Value, ErrorValue>> + Send + 'static,
{
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        (self.0)(display_path(&path), args).boxed()
    }
}

pub fn methods<F, R>(function: F) -> Option<Arc<dyn Target>>
where
    F: Fn(String, Vec<Value>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Value, ErrorValue>> + Send + 'static,
{
    Some(Arc::new(Methods(function)))
}

pub struct End {
    pub connection: Connection,
    pub driver: JoinHandle<CloseReason>,
}

impl End {
    pub fn main(&self) -> Stub {
        self.connection.main()
    }

    pub async fn ended(self) -> CloseReason {
        drop(self.connection);
        within(self.driver).await.unwrap()
    }
}

pub async fn within<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("took too long")
}

/// Waits until the condition holds; the session has no event for it.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

pub async fn pair(server: Option<Arc<dyn Target>>, client: Option<Arc<dyn Target>>) -> (End, End) {
    pair_with(server, client, Limits::default()).await
}

/// Server and client; the limits are the server's.
pub async fn pair_with(
    server: Option<Arc<dyn Target>>,
    client: Option<Arc<dyn Target>>,
    limits: Limits,
) -> (End, End) {
    let (near, far) = tokio::io::duplex(256 * 1024);
    let defaults = Limits::default();
    let (accepted, connected) = tokio::join!(
        ws::accept(near, &limits),
        ws::client(far, "ws://test/rpc", &defaults)
    );
    let (connection, driver) = Session::start(accepted.unwrap(), server, limits);
    let server = End {
        connection,
        driver: tokio::spawn(driver),
    };
    let (connection, driver) = Session::start(connected.unwrap(), client, defaults);
    let client = End {
        connection,
        driver: tokio::spawn(driver),
    };
    (server, client)
}

/// A peer that writes and reads the text of messages itself.
pub struct Raw(pub WebSocketStream<DuplexStream>);

impl Raw {
    pub async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// The next message, or the close as `close <code> <reason>`.
    pub async fn next(&mut self) -> String {
        loop {
            match within(self.0.next()).await {
                Some(Ok(Message::Text(text))) => return text.to_string(),
                Some(Ok(Message::Close(Some(frame)))) => {
                    return format!("close {} {}", u16::from(frame.code), frame.reason);
                }
                Some(Ok(_)) => {}
                other => return format!("gone {other:?}"),
            }
        }
    }

    pub async fn expect(&mut self, text: &str) {
        assert_eq!(self.next().await, text);
    }
}

pub async fn raw(server: Option<Arc<dyn Target>>, limits: Limits) -> (End, Raw) {
    let (near, far) = tokio::io::duplex(256 * 1024);
    let connect = tokio_tungstenite::client_async("ws://test/rpc", far);
    let (accepted, connected) = tokio::join!(ws::accept(near, &limits), connect);
    let (connection, driver) = Session::start(accepted.unwrap(), server, limits);
    (
        End {
            connection,
            driver: tokio::spawn(driver),
        },
        Raw(connected.unwrap().0),
    )
}
