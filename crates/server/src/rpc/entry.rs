//! What a stranger sees: one method.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use capnweb::{CallFuture, Path, Stub, Target, Value};
use hutch_protocol::{ApiError, ErrorCode};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::session::Session;
use super::{World, answer, args, names};
use crate::keys::Principal;

/// Wrong tokens that one connection may try.
const ATTEMPTS: u32 = 3;

/// The main object of a connection.
pub(crate) struct Entry {
    world: Arc<World>,
    open: Arc<AtomicBool>,
    done: CancellationToken,
    first: OnceLock<Principal>,
    failures: AtomicU32,
}

impl Entry {
    pub(crate) fn new(world: Arc<World>, open: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            world,
            open,
            done: CancellationToken::new(),
            first: OnceLock::new(),
            failures: AtomicU32::new(0),
        })
    }

    /// Resolves once somebody has authenticated on this connection, with who
    /// it was. The connection is theirs from then on.
    pub(crate) async fn authenticated(&self) -> Principal {
        self.done.cancelled().await;
        match self.first.get() {
            Some(principal) => principal.clone(),
            None => std::future::pending().await,
        }
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
        let principal = match self.world.keys.authenticate(&token) {
            Ok(principal) => principal,
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                return Err(error);
            }
        };
        // Its end must end what it opened, so there is one to a connection.
        let first = self.first.get_or_init(|| principal.clone());
        if first.key != principal.key {
            return Err(ApiError::new(
                ErrorCode::Forbidden,
                "this connection is another key's already; open one for each key",
            ));
        }
        self.open.store(true, Ordering::Relaxed);
        self.done.cancel();
        let session = Session::new(Arc::clone(&self.world), principal);
        Ok(Value::Stub(Stub::local(session)))
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
