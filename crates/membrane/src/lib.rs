//! What may cross between a client and a sandbox.
//!
//! Both sides are hostile, and each has a session of its own with the host.
//! Every value that goes from one session to the other is made anew here. Plain
//! values cross as they are. A client's function crosses as a function that
//! does nothing but call it. An object of a sandbox crosses bound to its
//! incarnation. Nothing of the host's own crosses in either direction: a client
//! could else hand its project to the code in a sandbox without meaning to, or
//! a sandbox reach what only clients may.
//!
//! The sessions have checked the shape and the size of what they received; the
//! membrane decides what it may mean on the other side.
#![forbid(unsafe_code)]

mod error;
mod references;
mod streams;
mod values;

use std::sync::Arc;

use capnweb::{ErrorValue, Pending, Value};
use futures_util::future::BoxFuture;
use hutch_protocol::{ApiError, ErrorCode};

pub use error::{error_text, error_value, from_sandbox};
pub use values::{inward_all, outward};

/// A call that was let into one incarnation of a sandbox. What it opened holds
/// it, and with it the sandbox awake.
pub trait Admitted: Send + Sync + 'static {
    /// Counts as activity now.
    fn touch(&self);

    /// Resolves with the error of what the incarnation's end cuts off.
    fn ended(&self) -> BoxFuture<'_, ErrorValue>;

    /// The same, if it is over already.
    fn is_over(&self) -> Option<ErrorValue>;

    /// What a failure inside is to the caller.
    fn failed<'a>(&'a self, error: &'a ErrorValue) -> BoxFuture<'a, ErrorValue>;

    /// A way back into the same incarnation that keeps nothing awake.
    fn door(&self) -> Arc<dyn Door>;
}

/// A call that is to be made once it was let in.
pub type Call = Box<dyn FnOnce() -> Result<Pending, ApiError> + Send>;

/// What a call came to, and what holds that.
pub type Answer = Result<(Value, Arc<dyn Admitted>), ApiError>;

/// A way back into one incarnation, for an object that lives there.
pub trait Door: Send + Sync + 'static {
    /// Lets a call in and waits for its result or for the incarnation's end.
    /// `operation` is what errors call it.
    fn enter(&self, operation: String, call: Call) -> BoxFuture<'static, Answer>;
}

fn host_object() -> ApiError {
    ApiError::new(
        ErrorCode::Forbidden,
        "an object of the server cannot be passed into or out of a sandbox; pass functions of your own and plain values",
    )
}
