//! A host between a client and a sandbox, both of which speak the wire by hand.
//! Also used by the fuzz target.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs
)]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use capnweb::{
    CallFuture, Connection, ErrorValue, Frame, Limits, Path, Session, Stub, Target, TransportError,
    Value, display_path,
};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Sink, Stream};
use hutch_membrane::{Admitted, Answer, Call, Door, error_value, from_sandbox};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// A WebSocket that is two queues.
struct Wire {
    incoming: UnboundedReceiver<String>,
    outgoing: UnboundedSender<String>,
}

impl Stream for Wire {
    type Item = Result<Frame, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.incoming.poll_recv(cx);
        next.map(|text| text.map(|text| Ok(Frame::Text(text.into()))))
    }
}

impl Sink<Frame> for Wire {
    type Error = TransportError;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, frame: Frame) -> Result<(), Self::Error> {
        if let Frame::Text(text) = frame {
            let _ = self.outgoing.send(text.to_string());
        }
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }
}

/// What the host has that must cross in neither direction.
pub struct Secret(pub AtomicUsize);

impl Target for Secret {
    fn call(self: Arc<Self>, _: Path, _: Vec<Value>) -> CallFuture {
        self.0.fetch_add(1, Ordering::Relaxed);
        async { Ok(Value::from("the host's own")) }.boxed()
    }
}

/// An incarnation that lets everything in.
pub struct Open;

impl Admitted for Open {
    fn touch(&self) {}

    fn ended(&self) -> BoxFuture<'_, ErrorValue> {
        std::future::pending().boxed()
    }

    fn is_over(&self) -> Option<ErrorValue> {
        None
    }

    fn failed<'a>(&'a self, error: &'a ErrorValue) -> BoxFuture<'a, ErrorValue> {
        async { error_value(from_sandbox(error)) }.boxed()
    }

    fn door(&self) -> Arc<dyn Door> {
        Arc::new(Open)
    }
}

impl Door for Open {
    fn enter(&self, _: String, call: Call) -> BoxFuture<'static, Answer> {
        async move {
            let result = call()?.await.map_err(|error| from_sandbox(&error))?;
            let admitted: Arc<dyn Admitted> = Arc::new(Open);
            Ok((result, admitted))
        }
        .boxed()
    }
}

/// What the client sees: `itx` gives an object of the host, all else goes into
/// the sandbox.
struct Handle {
    sandbox: Stub,
    secret: Arc<Secret>,
}

impl Target for Handle {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        if display_path(&path) == "itx" {
            let secret = Stub::local(self.secret.clone());
            return async { Ok(secret.into()) }.boxed();
        }
        async move {
            let args = hutch_membrane::inward_all(args).map_err(error_value)?;
            let result = self.sandbox.call(path, args).await;
            let result = result.map_err(|error| error_value(from_sandbox(&error)))?;
            let admitted: Arc<dyn Admitted> = Arc::new(Open);
            hutch_membrane::outward(result, &admitted).map_err(error_value)
        }
        .boxed()
    }
}

/// One of the two peers.
pub struct Peer {
    to: Option<UnboundedSender<String>>,
    from: UnboundedReceiver<String>,
    pub connection: Connection,
    driver: JoinHandle<()>,
}

impl Peer {
    fn start(main: Option<Arc<dyn Target>>, limits: Limits) -> Self {
        let (to, incoming) = unbounded_channel();
        let (outgoing, from) = unbounded_channel();
        let wire = Wire { incoming, outgoing };
        let (connection, driver) = Session::start(wire, main, limits);
        let driver = tokio::spawn(async move {
            driver.await;
        });
        Self {
            to: Some(to),
            from,
            connection,
            driver,
        }
    }

    /// Sends the text of a message.
    pub fn send(&self, text: &str) {
        if let Some(to) = &self.to {
            let _ = to.send(text.to_owned());
        }
    }

    /// What the host has said and was not taken yet.
    pub fn heard(&mut self) -> Option<String> {
        self.from.try_recv().ok()
    }

    /// The next message that is not a `release` or a `pull`.
    pub async fn next(&mut self) -> String {
        loop {
            let wait = std::time::Duration::from_secs(20);
            let next = tokio::time::timeout(wait, self.from.recv()).await;
            let text = next.expect("took too long").expect("the session is over");
            if !text.starts_with("[\"release\"") && !text.starts_with("[\"pull\"") {
                return text;
            }
        }
    }
}

/// Client, host and sandbox.
pub struct Middle {
    pub client: Peer,
    pub sandbox: Peer,
    pub secret: Arc<Secret>,
}

impl Middle {
    pub fn start(limits: Limits) -> Self {
        let sandbox = Peer::start(None, limits);
        let secret = Arc::new(Secret(AtomicUsize::new(0)));
        let handle = Handle {
            sandbox: sandbox.connection.main(),
            secret: secret.clone(),
        };
        let client = Peer::start(Some(Arc::new(handle)), limits);
        Self {
            client,
            sandbox,
            secret,
        }
    }

    /// Hangs up on both sides and waits for the host to notice.
    pub async fn end(self) -> Arc<Secret> {
        let Self {
            mut client,
            mut sandbox,
            secret,
        } = self;
        client.to = None;
        sandbox.to = None;
        let _ = client.driver.await;
        let _ = sandbox.driver.await;
        secret
    }
}

/// Lets the host do what it has to do.
pub async fn settle() {
    for _ in 0..48 {
        tokio::task::yield_now().await;
    }
}

/// Passes a value in, and returns the arguments as the sandbox gets them, or
/// the client's refusal.
pub async fn inward(middle: &mut Middle, value: &str) -> String {
    middle
        .client
        .send(&format!(r#"["push",["pipeline",0,["x"],[{value}]]]"#));
    middle.client.send(r#"["pull",1]"#);
    let Middle {
        client, sandbox, ..
    } = middle;
    tokio::select! {
        text = sandbox.next() => text,
        text = client.next() => text,
    }
}

/// Passes a value out, and returns what the client gets.
pub async fn outward(middle: &mut Middle, value: &str) -> String {
    middle.client.send(r#"["push",["pipeline",0,["x"],[]]]"#);
    middle.client.send(r#"["pull",1]"#);
    assert_eq!(
        middle.sandbox.next().await,
        r#"["push",["pipeline",0,["x"],[]]]"#
    );
    middle.sandbox.send(&format!(r#"["resolve",1,{value}]"#));
    middle.client.next().await
}

pub fn pushed(arguments: &str) -> String {
    format!(r#"["push",["pipeline",0,["x"],[{arguments}]]]"#)
}

pub fn resolved(value: &str) -> String {
    format!(r#"["resolve",1,{value}]"#)
}
