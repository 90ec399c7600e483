//! What a stranger sees: one method.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use capnweb::{CallFuture, Path, Stub, Target, Value};
use hutch_protocol::{ApiError, ErrorCode};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::session::Session;
use super::{World, answer, args, names};

/// Wrong tokens that one connection may try.
const ATTEMPTS: u32 = 3;

/// The main object of a connection.
pub(crate) struct Entry {
    world: Arc<World>,
    open: Arc<AtomicBool>,
    done: CancellationToken,
    failures: AtomicU32,
}

impl Entry {
    pub(crate) fn new(world: Arc<World>, open: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            world,
            open,
            done: CancellationToken::new(),
            failures: AtomicU32::new(0),
        })
    }

    /// Resolves once somebody has authenticated on this connection.
    pub(crate) async fn authenticated(&self) {
        self.done.cancelled().await;
    }

    fn authenticate(&self, args: &[Value]) -> Result<Value, ApiError> {
        if self.failures.load(Ordering::Relaxed) >= ATTEMPTS {
            return Err(unauthenticated(
                "too many wrong tokens on this connection; open another",
            ));
        }
        let given = args::at(args, 0);
        let kind = given
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if kind != "bearer" {
            return Err(unauthenticated(
                "use authenticate({type: \"bearer\", token})",
            ));
        }
        let token = given
            .get("token")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let token = SecretString::from(token.trim().to_owned());
        if !self.world.key.matches(&token) {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return Err(unauthenticated(
                "the token is not valid; pass --token or HUTCH_TOKEN, or the server's --data-dir so that its admin.key is read",
            ));
        }
        self.open.store(true, Ordering::Relaxed);
        self.done.cancel();
        Ok(Value::Stub(Stub::local(Session::new(Arc::clone(
            &self.world,
        )))))
    }
}

fn unauthenticated(message: &str) -> ApiError {
    ApiError::new(ErrorCode::Unauthenticated, message)
}

impl Target for Entry {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        match names(&path).as_deref() {
            Some(["authenticate"]) => answer(self.authenticate(&args)),
            _ => answer(Err(unauthenticated(
                "call authenticate({type: \"bearer\", token}) first",
            ))),
        }
    }

    fn get(self: Arc<Self>, _: Path) -> CallFuture {
        answer(Err(unauthenticated(
            "call authenticate({type: \"bearer\", token}) first",
        )))
    }
}
