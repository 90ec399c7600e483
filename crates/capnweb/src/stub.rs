//! References to objects.

use std::fmt;
use std::sync::Arc;

use crate::deferred::Deferred;
use crate::dispatch::{self, Op};
use crate::error::ErrorValue;
use crate::map::{MapBuilder, Variable};
use crate::path::IntoPath;
use crate::pending::Pending;
use crate::session::ImportLink;
use crate::target::{Function, Target};
use crate::value::Value;

/// A reference to an object, here or at a peer. Clones share it; dropping the
/// last one releases the object.
#[derive(Clone)]
pub struct Stub(Arc<Inner>);

pub(crate) enum Inner {
    /// An object of this side.
    Target(Arc<dyn Target>),
    /// An object of a peer.
    Import(ImportLink),
    /// Whatever a call comes to.
    Deferred(Arc<Deferred>),
    /// Nothing: every call fails.
    Rejected(Arc<ErrorValue>),
    /// A value inside a `map` that is being described.
    Variable(Variable),
}

impl Stub {
    /// A reference to an object of this side.
    pub fn local(target: Arc<dyn Target>) -> Self {
        Self::new(Inner::Target(target))
    }

    /// A reference to a function of this side.
    pub fn function<F, R>(function: F) -> Self
    where
        F: Fn(Vec<Value>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ErrorValue>> + Send + 'static,
    {
        Self::local(Arc::new(Function(function)))
    }

    /// A reference on which every call fails with the error.
    pub fn rejected(error: ErrorValue) -> Self {
        Self::new(Inner::Rejected(Arc::new(error)))
    }

    pub(crate) fn undefined() -> Self {
        Self::deferred(Deferred::done(Ok(Value::Undefined).into()))
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    pub(crate) fn from_arc(inner: Arc<Inner>) -> Self {
        Self(inner)
    }

    pub(crate) fn deferred(deferred: Arc<Deferred>) -> Self {
        Self::new(Inner::Deferred(deferred))
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// The same for clones, different for all other references that live.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether the object is of this side.
    pub fn is_local(&self) -> bool {
        matches!(*self.0, Inner::Target(_))
    }

    /// Whether the object was offered by a peer, and is nothing else. A result
    /// of this side, even one that is still to come, is not; whoever passes
    /// references on between peers must let only remote ones through.
    pub fn is_remote(&self) -> bool {
        matches!(*self.0, Inner::Import(_))
    }

    /// Calls a method. The call is on its way when this returns, behind all
    /// earlier ones.
    pub fn call(&self, path: impl IntoPath, args: Vec<Value>) -> Pending {
        Pending::new(dispatch::on_stub(self, Op::call(path.into_path(), args)))
    }

    /// Has the peer apply a function to this value, or to each element of it if
    /// it is a list, without a round trip for each: see [`MapBuilder`]. What is
    /// `null` or `undefined` stays so. `path` leads to the value to map.
    ///
    /// ```no_run
    /// # async fn example(main: capnweb::Stub) -> Result<(), capnweb::ErrorValue> {
    /// let users = main.call("users.list", vec![]).stub();
    /// let names = users.map("", |map| {
    ///     let name = map.call(&map.input(), "name", vec![]);
    ///     map.call(&main, "greet", vec![name.into_promise()]).into_promise()
    /// });
    /// let greetings = names.await?;
    /// # Ok(()) }
    /// ```
    pub fn map(
        &self,
        path: impl IntoPath,
        describe: impl FnOnce(&mut MapBuilder) -> Value,
    ) -> Pending {
        Pending::new(match MapBuilder::build(describe) {
            Ok(mapping) => dispatch::on_stub(self, Op::map(path.into_path(), mapping)),
            Err(error) => Deferred::rejected(error),
        })
    }

    /// What this comes to, as an argument or a part of a value: the receiver
    /// gets the value instead of a reference.
    pub fn into_promise(self) -> Value {
        Value::Promise(self)
    }

    /// Reads a property.
    pub fn get(&self, path: impl IntoPath) -> Pending {
        Pending::new(dispatch::on_stub(self, Op::get(path.into_path())))
    }
}

impl fmt::Debug for Stub {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Inner::Target(_) => out.write_str("Stub(local)"),
            Inner::Import(link) => write!(out, "Stub(import {})", link.id()),
            Inner::Deferred(deferred) => write!(out, "Stub({deferred:?})"),
            Inner::Rejected(error) => write!(out, "Stub(rejected: {error})"),
            Inner::Variable(_) => out.write_str("Stub(variable of a map)"),
        }
    }
}
