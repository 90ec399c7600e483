//! What a call came to, shared by all who wait for it.

use std::sync::{Arc, Mutex};

use crate::error::ErrorValue;
use crate::lock::lock;
use crate::path::{Key, Path, display_path, is_reserved};
use crate::stub::Stub;
use crate::value::Value;

/// A result or an error. Clones share it.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Value(View),
    Rejected(Arc<ErrorValue>),
}

/// A part of a shared value. Large values are never copied to look into them.
#[derive(Debug, Clone)]
pub(crate) struct View {
    root: Arc<Mutex<Value>>,
    path: Path,
}

/// Where a path leads.
pub(crate) enum Found {
    /// To a reference, with the rest of the path.
    Stub(Stub, Path),
    /// To plain data.
    Data(View),
}

impl From<Result<Value, ErrorValue>> for Outcome {
    fn from(result: Result<Value, ErrorValue>) -> Self {
        match result {
            Ok(value) => Self::Value(View::new(value)),
            Err(error) => Self::Rejected(Arc::new(error)),
        }
    }
}

impl View {
    pub(crate) fn new(value: Value) -> Self {
        Self {
            root: Arc::new(Mutex::new(value)),
            path: Path::new(),
        }
    }

    /// Looks at the part. Streams in it may be taken out. What `look` calls
    /// must not look at other shared values, or only by `try_with`: values of a
    /// hostile peer may refer to each other in a circle.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut Value) -> R) -> R {
        self.look(&mut lock(&self.root), look)
    }

    /// As `with`, unless somebody is looking.
    pub(crate) fn try_with<R>(&self, look: impl FnOnce(&mut Value) -> R) -> Option<R> {
        match self.root.try_lock() {
            Ok(mut root) => Some(self.look(&mut root, look)),
            Err(_) => None,
        }
    }

    fn look<R>(&self, root: &mut Value, look: impl FnOnce(&mut Value) -> R) -> R {
        let mut at = root;
        for key in &self.path {
            match at.step(key) {
                Some(part) => at = part,
                None => return look(&mut Value::Undefined),
            }
        }
        look(at)
    }

    /// The part as a value of its own: moved if nobody else can see it, else
    /// copied, with streams moved.
    pub(crate) fn into_value(self) -> Value {
        match Arc::try_unwrap(self.root) {
            Ok(root) => {
                let mut root = root
                    .into_inner()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                if self.path.is_empty() {
                    return root;
                }
                let mut at = &mut root;
                for key in &self.path {
                    match at.step(key) {
                        Some(part) => at = part,
                        None => return Value::Undefined,
                    }
                }
                at.take()
            }
            Err(root) => Self {
                root,
                path: self.path,
            }
            .with(Value::share),
        }
    }

    /// Follows a path to the first reference on it or to its end.
    pub(crate) fn find(&self, path: Path) -> Result<Found, ErrorValue> {
        self.with(|start| {
            let mut at = start;
            let mut steps = path.iter().enumerate();
            loop {
                let Some((index, key)) = steps.next() else {
                    return Ok(match at {
                        Value::Stub(stub) | Value::Promise(stub) => {
                            Found::Stub(stub.clone(), Path::new())
                        }
                        _ => Found::Data(self.below(&path)),
                    });
                };
                if let Value::Stub(stub) | Value::Promise(stub) = at {
                    return Ok(Found::Stub(
                        stub.clone(),
                        path.get(index..).unwrap_or_default().to_vec(),
                    ));
                }
                match at.step(key) {
                    Some(part) => at = part,
                    None if index + 1 == path.len() => {
                        return Ok(Found::Data(Self::new(Value::Undefined)));
                    }
                    None => {
                        let so_far = display_path(path.get(..=index).unwrap_or_default());
                        return Err(ErrorValue::type_error(format!("'{so_far}' is undefined.")));
                    }
                }
            }
        })
    }

    pub(crate) fn below(&self, path: &[Key]) -> Self {
        let mut whole = self.path.clone();
        whole.extend_from_slice(path);
        Self {
            root: self.root.clone(),
            path: whole,
        }
    }
}

/// Whether a path names what every JavaScript object has. Such a path leads
/// to `undefined`, whatever the target.
pub(crate) fn has_reserved(path: &[Key]) -> bool {
    path.iter()
        .any(|key| matches!(key, Key::Name(name) if is_reserved(name)))
}
