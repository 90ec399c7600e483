//! References to objects.

use std::fmt;
use std::sync::Arc;

use crate::error::ErrorValue;
use crate::path::IntoPath;
use crate::pending::Pending;
use crate::target::{Function, Target};
use crate::value::Value;

/// A reference to an object, here or at a peer. Clones share it; dropping the
/// last one releases the object.
#[derive(Clone)]
pub struct Stub(Arc<Inner>);

enum Inner {
    Target(Arc<dyn Target>),
    Rejected(ErrorValue),
}

impl Stub {
    /// A reference to an object of this side.
    pub fn local(target: Arc<dyn Target>) -> Self {
        Self(Arc::new(Inner::Target(target)))
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
        Self(Arc::new(Inner::Rejected(error)))
    }

    /// Whether the object is of this side.
    pub fn is_local(&self) -> bool {
        matches!(*self.0, Inner::Target(_))
    }

    /// Calls a method. The call is on its way when this returns.
    pub fn call(&self, path: impl IntoPath, args: Vec<Value>) -> Pending {
        let _ = (path.into_path(), args);
        Pending::failed(ErrorValue::new("Error", "not connected"))
    }

    /// Reads a property.
    pub fn get(&self, path: impl IntoPath) -> Pending {
        self.call(path, Vec::new())
    }
}

impl fmt::Debug for Stub {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Inner::Target(_) => out.write_str("Stub(local)"),
            Inner::Rejected(error) => write!(out, "Stub(rejected: {error})"),
        }
    }
}
