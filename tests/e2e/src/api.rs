//! A client that knows nothing but the wire.

use capnweb::{Connection, ErrorValue, Limits, Session, Stub, Value};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value as Json, json};
use tokio_tungstenite::connect_async_with_config;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::task::AbortOnDropHandle;

/// One authenticated connection on one project.
pub struct Api {
    /// The connection itself.
    pub connection: Connection,
    /// The session object.
    pub session: Stub,
    /// The project.
    pub itx: Stub,
    _driver: AbortOnDropHandle<()>,
}

impl Api {
    /// Connects and authenticates; everything goes out in one burst.
    pub async fn connect(url: &str, token: &str) -> Self {
        let (connection, driver) = open(url).await;
        let credentials = Value::from_json(json!({ "type": "bearer", "token": token }));
        let session = connection
            .main()
            .call("authenticate", vec![credentials])
            .stub();
        let itx = session
            .call("projects.get", vec![Value::from("default")])
            .stub();
        Self {
            connection,
            session,
            itx,
            _driver: driver,
        }
    }

    /// A connection that has not authenticated.
    pub async fn stranger(url: &str) -> Stranger {
        let (connection, driver) = open(url).await;
        Stranger {
            connection,
            _driver: driver,
        }
    }

    /// Sends one frame as a stranger and waits until the server hangs up.
    pub async fn raw(url: &str, frame: &str) {
        let address = format!("{}/api", url.replacen("http", "ws", 1));
        let (mut socket, _) = tokio_tungstenite::connect_async(address)
            .await
            .expect("a connection");
        // The server may hang up while a large frame is still on its way.
        let _ = socket.send(Message::text(frame.to_owned())).await;
        while let Some(Ok(_)) = socket.next().await {}
    }

    /// A sandbox of the project, by name.
    pub fn sandbox(&self, name: &str) -> Handle {
        let path = format!("/sandboxes/{name}");
        Handle(
            self.itx
                .call("sandboxes.get", vec![Value::from(path)])
                .stub(),
        )
    }

    /// A new sandbox with the given options.
    pub async fn create(&self, name: &str, options: Json) -> Handle {
        let handle = self.sandbox(name);
        handle.call("create", &[options]).await.expect("create");
        handle
    }

    /// A stream of the project.
    pub fn stream(&self, path: &str) -> Handle {
        Handle(
            self.itx
                .call("streams.get", vec![Value::from(path.to_owned())])
                .stub(),
        )
    }

    /// The types of a sandbox's events, without their prefix.
    pub async fn events(&self, name: &str) -> Vec<String> {
        let events = self
            .stream(&format!("/sandboxes/{name}"))
            .json("getEvents", &[])
            .await;
        let events = events.as_array().expect("events");
        let name = |event: &Json| {
            event["type"]
                .as_str()
                .expect("a type")
                .replace("sandbox/", "")
        };
        events.iter().map(name).collect()
    }
}

/// A connection that has not authenticated.
pub struct Stranger {
    connection: Connection,
    _driver: AbortOnDropHandle<()>,
}

impl Stranger {
    /// What the server offers to strangers.
    pub fn main(&self) -> Stub {
        self.connection.main()
    }
}

/// A connection without authentication.
pub(crate) async fn open(url: &str) -> (Connection, AbortOnDropHandle<()>) {
    let mut limits = Limits::default();
    // As clients do that know no limit of their own.
    limits.send_bytes = limits.receive_bytes;
    let address = format!("{}/api", url.replacen("http", "ws", 1));
    let config = Some(capnweb::ws::config(&limits));
    let (socket, _) = connect_async_with_config(address, config, true)
        .await
        .expect("a connection");
    let (connection, driver) =
        Session::start(capnweb::ws::tungstenite(socket, &limits), None, limits);
    let driver = AbortOnDropHandle::new(tokio::spawn(async move {
        driver.await;
    }));
    (connection, driver)
}

/// Any remote object.
#[derive(Clone)]
pub struct Handle(pub Stub);

impl Handle {
    /// Calls a method with plain arguments.
    pub async fn call(&self, method: &str, args: &[Json]) -> Result<Value, ErrorValue> {
        let args = args.iter().cloned().map(Value::from_json).collect();
        self.0.call(method, args).await
    }

    /// Calls a method that must succeed and whose answer is plain.
    pub async fn json(&self, method: &str, args: &[Json]) -> Json {
        let value = self.call(method, args).await;
        let value = value.unwrap_or_else(|error| panic!("{method} failed: {}", message(&error)));
        plain(value).to_json().unwrap_or(Json::Null)
    }

    /// Calls a method that must fail; gives the code and the error.
    pub async fn refusal(&self, method: &str, args: &[Json]) -> (String, ErrorValue) {
        match self.call(method, args).await {
            Ok(value) => panic!("{method} succeeded: {value:?}"),
            Err(error) => (error.code().unwrap_or_default().to_owned(), error),
        }
    }

    /// Runs a command.
    pub async fn exec(&self, command: &str) -> Json {
        self.json("exec", &[json!(command)]).await
    }

    /// Runs a command with options.
    pub async fn exec_with(&self, command: &str, options: Json) -> Json {
        self.json("exec", &[json!(command), options]).await
    }

    /// The exit code and standard output of a command.
    pub async fn sh(&self, command: &str) -> (i64, String) {
        let result = self.exec(command).await;
        let code = result["exitCode"].as_i64().expect("an exit code");
        (code, string(&result["stdout"]))
    }
}

/// The data of an answer, without its functions.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(mut members) => {
            for (_, member) in members.iter_mut() {
                *member = plain(member.take());
            }
            Value::Object(members)
        }
        Value::Stub(_) | Value::Readable(_) | Value::Writable(_) => Value::Null,
        other => other,
    }
}

/// A string member, empty if it is something else.
pub fn string(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// An error in one line, for a failed test.
pub fn message(error: &ErrorValue) -> String {
    let code = error.code().unwrap_or("no code");
    let details = error
        .props
        .get("details")
        .map(Value::clone_without_streams)
        .unwrap_or_default();
    let details = details.to_json().unwrap_or(Json::Null);
    format!("{} [{code}] {details}", error.message)
}
