//! Results that have not arrived.

use std::future::IntoFuture;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::error::ErrorValue;
use crate::stub::Stub;
use crate::value::Value;

/// The result of a call that is under way. Await it for the value, or call on
/// [`stub`](Self::stub) without waiting. Dropping it gives the call up unless a
/// stub of it is kept.
#[must_use = "dropping it gives the call up"]
#[derive(Debug)]
pub struct Pending(Stub);

impl Pending {
    pub(crate) fn failed(error: ErrorValue) -> Self {
        Self(Stub::rejected(error))
    }

    /// The result as a target of calls, before it has arrived.
    pub fn stub(&self) -> Stub {
        self.0.clone()
    }
}

impl IntoFuture for Pending {
    type Output = Result<Value, ErrorValue>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async { Err(ErrorValue::new("Error", "not connected")) }.boxed()
    }
}
