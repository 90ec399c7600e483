//! Results that have not arrived.

use std::future::IntoFuture;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::deferred::Deferred;
use crate::error::ErrorValue;
use crate::outcome::Outcome;
use crate::promises;
use crate::stub::Stub;
use crate::value::Value;

/// The result of a call that is under way.
///
/// Await it for the value, or call on [`stub`](Self::stub) without waiting.
/// The call was sent when this was made. Dropping it, and every stub of it,
/// gives the call up: the callee's work is dropped.
///
/// ```no_run
/// # async fn example(main: capnweb::Stub) -> Result<(), capnweb::ErrorValue> {
/// // Both calls leave at once; the second runs on what the first comes to.
/// let project = main.call("authenticate", vec!["token".into()]).stub();
/// let value = project.call("sandboxes.list", vec![]).await?;
/// # Ok(()) }
/// ```
#[must_use = "dropping it gives the call up"]
#[derive(Debug)]
pub struct Pending(Arc<Deferred>);

impl Pending {
    pub(crate) fn new(deferred: Arc<Deferred>) -> Self {
        Self(deferred)
    }

    /// Asks the peer for the result without waiting for it; awaiting does, too.
    #[must_use = "dropping it gives the call up"]
    pub fn ask(self) -> Self {
        self.0.demand();
        self
    }

    /// The result as a target of calls, before it has arrived.
    pub fn stub(&self) -> Stub {
        Stub::deferred(self.0.clone())
    }
}

impl IntoFuture for Pending {
    type Output = Result<Value, ErrorValue>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let deferred = self.0;
        async move {
            let outcome = deferred.wait().await;
            if Arc::strong_count(&deferred) > 1 {
                // Who completed it may still be about to let go; then the
                // value can be moved out instead of copied.
                tokio::task::yield_now().await;
            }
            let outcome = match Arc::try_unwrap(deferred) {
                Ok(owned) => {
                    drop(outcome);
                    owned.into_outcome()
                }
                Err(shared) => {
                    drop(shared);
                    Some(outcome)
                }
            };
            match outcome {
                Some(Outcome::Value(view)) => promises::settle(view.into_value(), None).await,
                Some(Outcome::Rejected(error)) => Err(Arc::unwrap_or_clone(error)),
                None => Err(crate::deferred::panicked()),
            }
        }
        .boxed()
    }
}
