//! What an authenticated caller sees.

use std::sync::Arc;

use capnweb::{CallFuture, Path, Scoped, Stub, Target, Value};
use futures_util::FutureExt;
use hutch_protocol::{ApiError, ErrorCode, ProjectSlug};
use serde_json::json;

use super::project::Itx;
use super::{World, answer, args, names, no_method, no_property, plain, run};
use crate::projects::Project;

/// A session: who I am, and my projects.
pub(super) struct Session {
    world: Arc<World>,
}

impl Session {
    pub(super) fn new(world: Arc<World>) -> Arc<Self> {
        Arc::new(Self { world })
    }

    fn itx(&self, project: Project) -> Value {
        Value::Stub(Stub::local(Itx::new(Arc::clone(&self.world), project)))
    }

    fn list(&self) -> Result<Value, ApiError> {
        plain(&self.world.projects.list())
    }
}

impl Target for Session {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        match names(&path).as_deref() {
            Some(["whoami"]) => answer(plain(&json!({ "type": "admin", "projects": "all" }))),
            Some(["projects", "list"]) => answer(self.list()),
            Some(["projects", "get"]) => {
                let found = args::text(&args, 0, "the project")
                    .and_then(|name| self.world.projects.get(name));
                answer(found.map(|project| self.itx(project)))
            }
            Some(["projects", "create"]) => {
                let slug = args::at(&args, 0)
                    .get("slug")
                    .and_then(Value::as_str)
                    .map(str::parse::<ProjectSlug>);
                let Some(slug) = slug else {
                    let message = "use projects.create({slug: \"...\"})";
                    return answer(Err(ApiError::new(ErrorCode::ValidationFailed, message)));
                };
                run(async move {
                    let project = self.world.projects.create(slug?).await?;
                    Ok(self.itx(project))
                })
            }
            _ => answer(Err(no_method("the session", &path))),
        }
    }

    fn get(self: Arc<Self>, path: Path) -> CallFuture {
        match names(&path).as_deref() {
            Some(["projects"]) => answer(Ok(Value::Stub(Scoped::stub(self, "projects")))),
            _ => std::future::ready(Err(no_property(&path))).boxed(),
        }
    }
}
