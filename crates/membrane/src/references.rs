//! References that cross, each wrapped in an object of the host's.

use std::sync::Arc;

use capnweb::{CallFuture, Path, Stub, Target, Value};
use futures_util::FutureExt as _;
use hutch_protocol::{ApiError, ErrorCode};

use crate::values::{inert, inward, inward_all, outward};
use crate::{Door, error_text, error_value};

/// Characters of a method's name in an error.
const SHOWN: usize = 80;

/// A client's function, as a sandbox sees it.
pub(crate) struct ClientFunction(pub(crate) Stub);

impl Target for ClientFunction {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        run(async move {
            let args: Result<Vec<_>, _> = args.into_iter().map(inert).collect();
            let result = self.0.call(path, args?).await;
            let result = result
                .map_err(|error| ApiError::new(ErrorCode::UnknownError, error_text(&error)))?;
            inward(result)
        })
    }
}

/// An object that lives in one incarnation.
pub(crate) struct SandboxObject {
    stub: Stub,
    door: Arc<dyn Door>,
}

impl SandboxObject {
    pub(crate) fn new(stub: Stub, door: Arc<dyn Door>) -> Self {
        Self { stub, door }
    }
}

impl Target for SandboxObject {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        let operation = capnweb::display_path(&path).chars().take(SHOWN).collect();
        run(async move {
            let stub = self.stub.clone();
            let call = Box::new(move || Ok(stub.call(path, inward_all(args)?)));
            let (result, admitted) = self.door.enter(operation, call).await?;
            outward(result, &admitted)
        })
    }
}

fn run<F>(method: F) -> CallFuture
where
    F: Future<Output = Result<Value, ApiError>> + Send + 'static,
{
    async move { method.await.map_err(error_value) }.boxed()
}
