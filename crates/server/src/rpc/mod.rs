//! The objects that clients call.

mod args;
mod entry;
mod keys;
mod project;
mod sandbox;
mod session;
mod streams;
mod subscription;

use capnweb::{CallFuture, ErrorValue, Key, Path, Value};
use futures_util::FutureExt;
use hutch_protocol::{ApiError, ErrorCode};
use hutch_sandboxes::Sandboxes;
use hutch_streams::Store;

use crate::keys::Keys;
use crate::projects::Projects;

pub(crate) use entry::Entry;
pub(crate) use hutch_membrane::{error_text, error_value};

/// All that the objects reach.
pub(crate) struct World {
    pub(crate) sandboxes: Sandboxes,
    pub(crate) projects: Projects,
    pub(crate) store: Store,
    pub(crate) keys: Keys,
}

/// The names of a path; none if a step is an index.
fn names(path: &Path) -> Option<Vec<&str>> {
    path.iter()
        .map(|key| match key {
            Key::Name(name) => Some(name.as_str()),
            Key::Index(_) => None,
        })
        .collect()
}

fn answer(result: Result<Value, ApiError>) -> CallFuture {
    std::future::ready(result.map_err(error_value)).boxed()
}

fn no_method(object: &str, path: &Path) -> ApiError {
    let shown: String = capnweb::display_path(path).chars().take(80).collect();
    ApiError::new(
        ErrorCode::MethodNotFound,
        format!("{object} has no method {shown:?}"),
    )
    .with("method", shown)
}

/// Any serialisable answer.
fn plain<T: serde::Serialize>(data: &T) -> Result<Value, ApiError> {
    Value::serialize(data)
        .map_err(|error| ApiError::new(ErrorCode::InternalError, error.to_string()))
}

/// Runs an async method whose errors are ours.
fn run<F>(method: F) -> CallFuture
where
    F: Future<Output = Result<Value, ApiError>> + Send + 'static,
{
    async move { method.await.map_err(error_value) }.boxed()
}

/// A read of a property that has no value.
fn no_property(path: &Path) -> ErrorValue {
    let shown: String = capnweb::display_path(path).chars().take(80).collect();
    error_value(ApiError::new(
        ErrorCode::MethodNotFound,
        format!("there is no property {shown:?}"),
    ))
}
