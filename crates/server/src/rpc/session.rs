//! What an authenticated caller sees.

use std::sync::Arc;

use capnweb::{CallFuture, Path, Scoped, Stub, Target, Value};
use futures_util::FutureExt;
use hutch_protocol::{ApiError, ErrorCode, ProjectSlug};
use serde_json::json;

use super::keys;
use super::project::Itx;
use super::{World, answer, args, names, no_method, no_property, plain, run};
use crate::keys::{KeyName, Principal, Projects};
use crate::projects::{Project, unknown_project};

/// A session: who I am, and my projects.
pub(super) struct Session {
    pub(super) world: Arc<World>,
    pub(super) principal: Principal,
}

impl Session {
    pub(super) fn new(world: Arc<World>, principal: Principal) -> Arc<Self> {
        Arc::new(Self { world, principal })
    }

    fn itx(&self, project: Project) -> Value {
        Value::Stub(Stub::local(Itx::new(Arc::clone(&self.world), project)))
    }

    fn list(&self) -> Result<Value, ApiError> {
        let mut projects = self.world.projects.list();
        projects.retain(|project| self.principal.opens(&project.id));
        plain(&projects)
    }

    /// A project that the caller's key opens; the others do not exist for it.
    pub(super) fn project(&self, id_or_slug: &str) -> Result<Project, ApiError> {
        let found = self.world.projects.get(id_or_slug)?;
        if self.principal.opens(&found.id) {
            return Ok(found);
        }
        Err(unknown_project(id_or_slug))
    }

    fn who(&self) -> serde_json::Value {
        let projects = match &self.principal.projects {
            Projects::All => json!("all"),
            Projects::One(id) => json!([id]),
        };
        match &self.principal.key {
            KeyName::Admin => json!({ "type": "admin", "projects": projects }),
            KeyName::Stored(id) => json!({ "type": "key", "key": id, "projects": projects }),
        }
    }

    async fn create(&self, slug: ProjectSlug) -> Result<Value, ApiError> {
        if self.principal.projects != Projects::All {
            return Err(ApiError::new(
                ErrorCode::Forbidden,
                "this key opens one project and makes none; use a key for all projects",
            ));
        }
        let project = self.world.projects.create(slug).await?;
        Ok(self.itx(project))
    }
}

impl Target for Session {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        match names(&path).as_deref() {
            Some(["whoami"]) => answer(plain(&self.who())),
            Some(["projects", "list"]) => answer(self.list()),
            Some(["projects", "get"]) => {
                let found = args::text(&args, 0, "the project").and_then(|name| self.project(name));
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
                run(async move { self.create(slug?).await })
            }
            Some(["keys", method]) => match keys::Method::of(method) {
                Some(method) => run(async move { keys::call(&self, method, &args).await }),
                None => answer(Err(no_method("the session", &path))),
            },
            _ => answer(Err(no_method("the session", &path))),
        }
    }

    fn get(self: Arc<Self>, path: Path) -> CallFuture {
        match names(&path).as_deref() {
            Some([group @ ("projects" | "keys")]) => {
                let group = (*group).to_owned();
                answer(Ok(Value::Stub(Scoped::stub(self, &group))))
            }
            _ => std::future::ready(Err(no_property(&path))).boxed(),
        }
    }
}
