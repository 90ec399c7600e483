//! The `user` main: the official domains, and the `sandbox` object of handles.

use super::arguments::Arguments;
use super::files::Surface;
use super::{Services, answer, commands, files, processes, sandbox};
use capnweb::{CallFuture, ErrorValue, Path, Scoped, Target, Value, display_path, not_a_function};
use futures_util::FutureExt;
use futures_util::future::ready;
use std::sync::Arc;

/// Names of the groups of methods.
const GROUPS: [&str; 5] = ["commands", "files", "processes", "sandbox", "utils"];

/// What callers reach.
#[derive(Debug)]
pub struct User(Arc<Services>);

impl User {
    /// The main over the services.
    #[must_use]
    pub fn new(services: Arc<Services>) -> Self {
        Self(services)
    }
}

impl Target for User {
    fn call(self: Arc<Self>, path: Path, arguments: Vec<Value>) -> CallFuture {
        let open = self.0.open_calls.enter();
        let services = Arc::clone(&self.0);
        async move {
            let result = dispatch(&services, &path, Arguments::new(arguments)).await;
            drop(open);
            result
        }
        .boxed()
    }

    fn get(self: Arc<Self>, path: Path) -> CallFuture {
        let name = display_path(&path);
        if GROUPS.contains(&name.as_str()) {
            return ready(Ok(Scoped::stub(self, path).into())).boxed();
        }
        ready(Err(ErrorValue::type_error(format!(
            "'{name}' is not a property."
        ))))
        .boxed()
    }
}

async fn dispatch(
    services: &Services,
    path: &Path,
    arguments: Arguments,
) -> Result<Value, ErrorValue> {
    let name = display_path(path);
    let result = match name.split_once('.') {
        Some(("utils", "ping")) => Some(Ok("healthy".into())),
        Some(("commands", "execute")) => Some(commands::execute(services, arguments).await),
        Some(("commands", "executeStream")) => {
            Some(commands::execute_stream(services, arguments).await)
        }
        Some(("files", method)) => files::call(services, Surface::Domain, method, arguments).await,
        Some(("processes", method)) => processes::call(services, method, arguments).await,
        Some(("sandbox", method)) => sandbox::call(services, method, arguments).await,
        _ => None,
    };
    match result {
        Some(result) => result.map_err(answer::error),
        None => Err(not_a_function(path)),
    }
}
