//! The `control` main: honest unless the sandbox's name says otherwise, since a
//! boot must succeed before a call can go wrong.

use std::sync::Arc;

use capnweb::{CallFuture, ErrorValue, Limits, Object, Path, Session, Target, Value};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

struct Control {
    name: String,
}

impl Target for Control {
    fn call(self: Arc<Self>, _: Path, _: Vec<Value>) -> CallFuture {
        Box::pin(async move {
            match self.name.as_str() {
                "control-silent" => std::future::pending().await,
                "control-refuses" => Err(ErrorValue::new("Error", "x".repeat(10 << 20))
                    .with_prop("code", "UNAUTHENTICATED")),
                "control-is-odd" => Ok("seven".into()),
                _ => Ok(Value::Object(Object::new())),
            }
        })
    }
}

pub(in super::super) async fn control(io: UnixStream, name: String) {
    if name == "control-mute" {
        return mute(io).await;
    }
    let limits = Limits::default();
    let closes = name == "control-closes";
    if let Ok(socket) = capnweb::ws::accept(io, &limits).await {
        let main = Arc::new(Control { name });
        let (connection, driver) = Session::start(socket, Some(main), limits);
        if !closes {
            driver.await;
        }
        drop(connection);
    }
}

/// Takes everything and says nothing.
pub(super) async fn mute(mut io: UnixStream) {
    let mut taken = [0; 4096];
    while let Ok(1..) = io.read(&mut taken).await {}
}
