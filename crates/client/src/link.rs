//! What keeps the way to a server: the connection now, and how to make the next.

use crate::{ClientError, transport::Address};
use capnweb::{Connection, Limits, Session, Stub, Transport, Value};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};

/// The way to one server. Calls that are open when a connection ends fail; the
/// next call makes a new connection, once, however many wait for it.
#[derive(Debug)]
pub(crate) struct Link {
    /// `None` where the transport was given, and cannot be made again.
    dial: Option<Dial>,
    wire: Mutex<Arc<Wire>>,
    dialing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Dial {
    address: Address,
    token: SecretString,
}

/// One connection and the session on it.
#[derive(Debug)]
pub(crate) struct Wire {
    connection: Connection,
    session: Stub,
}

impl Wire {
    fn start(transport: impl Transport, limits: Limits, token: &SecretString) -> Self {
        let (connection, driver) = Session::start(transport, None, limits);
        // Ends by itself with the last reference to the session.
        tokio::spawn(driver);
        let credentials = json!({"type": "bearer", "token": token.expose_secret()});
        let session = connection
            .main()
            .call("authenticate", vec![Value::from_json(credentials)])
            .stub();
        Self {
            connection,
            session,
        }
    }

    /// Resolves when the connection has ended.
    pub(crate) async fn closed(&self) -> ClientError {
        self.connection.closed().await.error(true).into()
    }
}

impl Link {
    pub(crate) async fn connect(url: &str, token: SecretString) -> Result<Self, ClientError> {
        let dial = Dial {
            address: Address::parse(url)?,
            token,
        };
        let wire = dial.connect().await?;
        Ok(Self::new(Some(dial), wire))
    }

    pub(crate) fn over(transport: impl Transport, limits: Limits, token: &SecretString) -> Self {
        Self::new(None, Wire::start(transport, limits, token))
    }

    fn new(dial: Option<Dial>, wire: Wire) -> Self {
        Self {
            dial,
            wire: Mutex::new(Arc::new(wire)),
            dialing: tokio::sync::Mutex::new(()),
        }
    }

    fn now(&self) -> Arc<Wire> {
        let wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&wire)
    }

    /// The connection that is there, or a new one.
    async fn wire(&self) -> Result<Arc<Wire>, ClientError> {
        let wire = self.now();
        if !wire.connection.is_closed() {
            return Ok(wire);
        }
        let Some(dial) = &self.dial else {
            return Err(wire.connection.closed().await.error(false).into());
        };
        let _one = self.dialing.lock().await;
        let wire = self.now();
        if !wire.connection.is_closed() {
            return Ok(wire);
        }
        let wire = Arc::new(dial.connect().await?);
        *self.wire.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&wire);
        Ok(wire)
    }
}

impl Dial {
    async fn connect(&self) -> Result<Wire, ClientError> {
        let limits = Limits::default();
        let transport = self.address.connect(&limits).await?;
        Ok(Wire::start(transport, limits, &self.token))
    }
}

/// An object of the server, by the calls that lead to it from the session. It
/// is found anew on each connection.
#[derive(Debug)]
pub(crate) struct Remote {
    link: Arc<Link>,
    steps: Vec<(&'static str, String)>,
    found: Mutex<Option<(Arc<Wire>, Stub)>>,
}

impl Clone for Remote {
    fn clone(&self) -> Self {
        Self {
            link: Arc::clone(&self.link),
            steps: self.steps.clone(),
            found: Mutex::new(self.remembered()),
        }
    }
}

impl Remote {
    /// The session itself.
    pub(crate) fn session(link: Arc<Link>) -> Self {
        Self {
            link,
            steps: Vec::new(),
            found: Mutex::new(None),
        }
    }

    /// What `method(argument)` of this object gives. Costs nothing.
    pub(crate) fn below(&self, method: &'static str, argument: &str) -> Self {
        let mut steps = self.steps.clone();
        steps.push((method, argument.to_owned()));
        Self {
            link: Arc::clone(&self.link),
            steps,
            found: Mutex::new(None),
        }
    }

    fn remembered(&self) -> Option<(Arc<Wire>, Stub)> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.clone()
    }

    fn remember(&self, found: Option<(Arc<Wire>, Stub)>) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// The object on the connection that is there, or on a new one.
    pub(crate) async fn find(&self) -> Result<(Arc<Wire>, Stub), ClientError> {
        let wire = self.link.wire().await?;
        if let Some((on, stub)) = self.remembered()
            && Arc::ptr_eq(&on, &wire)
        {
            return Ok((wire, stub));
        }
        let mut stub = wire.session.clone();
        for (method, argument) in &self.steps {
            stub = stub
                .call(*method, vec![Value::String(argument.clone())])
                .stub();
        }
        let found = (wire, stub);
        self.remember(Some(found.clone()));
        Ok(found)
    }

    /// Makes a call and awaits its answer.
    pub(crate) async fn call(&self, path: &str, args: Vec<Value>) -> Result<Value, ClientError> {
        let (wire, stub) = self.find().await?;
        self.answered(on_wire(&wire, stub.call(path, args)).await)
    }

    /// Reads a property.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, ClientError> {
        let (wire, stub) = self.find().await?;
        self.answered(on_wire(&wire, stub.get(path)).await)
    }

    /// An object that was refused may be there the next time.
    fn answered(&self, answer: Result<Value, ClientError>) -> Result<Value, ClientError> {
        if answer.is_err() {
            self.remember(None);
        }
        answer
    }
}

/// Awaits an answer. The connection stays for as long as somebody waits.
async fn on_wire(_wire: &Wire, pending: capnweb::Pending) -> Result<Value, ClientError> {
    Ok(pending.await?)
}
