//! What a peer can call.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use crate::error::ErrorValue;
use crate::path::{IntoPath, Key, Path, display_path};
use crate::stub::Stub;
use crate::value::Value;

/// A call under way. Dropping it gives the call up.
pub type CallFuture = BoxFuture<'static, Result<Value, ErrorValue>>;

/// An object whose methods a peer can call.
pub trait Target: Send + Sync + 'static {
    /// Starts a call.
    ///
    /// Runs on the session's read loop in the order in which calls arrive (calls
    /// queued on a result: where that result arrives, in order), so it must not
    /// block: admit in order here, do the rest in the future. The
    /// future is dropped when the caller releases the call or goes away. An
    /// empty path calls the target itself as a function. Arguments are dropped
    /// with the call, and with them the caller's functions.
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture;

    /// Reads a property. The path is never empty. Unless implemented every
    /// property is a `TypeError`. For a group of methods give
    /// [`Scoped::stub`].
    fn get(self: Arc<Self>, path: Path) -> CallFuture {
        ready(Err(ErrorValue::type_error(format!(
            "'{}' is not a property.",
            display_path(&path)
        ))))
        .boxed()
    }
}

/// The error of a call to something that cannot be called.
pub fn not_a_function(path: &[Key]) -> ErrorValue {
    ErrorValue::type_error(format!("'{}' is not a function.", display_path(path)))
}

/// A part of a target, such as a group of its methods, as a target of its own.
pub struct Scoped {
    target: Arc<dyn Target>,
    prefix: Path,
}

impl Scoped {
    /// The part of `target` at `prefix`.
    pub fn stub(target: Arc<dyn Target>, prefix: impl IntoPath) -> Stub {
        Stub::local(Arc::new(Self {
            target,
            prefix: prefix.into_path(),
        }))
    }

    fn whole(&self, path: Path) -> Path {
        let mut whole = self.prefix.clone();
        whole.extend(path);
        whole
    }
}

impl Target for Scoped {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        let path = self.whole(path);
        self.target.clone().call(path, args)
    }

    fn get(self: Arc<Self>, path: Path) -> CallFuture {
        let path = self.whole(path);
        self.target.clone().get(path)
    }
}

/// A plain function as a target.
pub(crate) struct Function<F>(pub(crate) F);

impl<F, R> Target for Function<F>
where
    F: Fn(Vec<Value>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Value, ErrorValue>> + Send + 'static,
{
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        if path.is_empty() {
            (self.0)(args).boxed()
        } else {
            ready(Err(not_a_function(&path))).boxed()
        }
    }
}
