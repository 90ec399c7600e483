//! `itx`: what one project offers.

use std::sync::Arc;

use capnweb::{CallFuture, Path, Scoped, Stub, Target, Value};
use futures_util::FutureExt;
use hutch_protocol::{ApiError, SandboxPath, StreamPath};
use hutch_streams::StreamListing;
use serde_json::json;

use super::sandbox::SandboxObject;
use super::streams::StreamObject;
use super::{World, answer, args, names, no_method, no_property, plain, run};
use crate::projects::Project;

/// One project's capabilities.
pub(super) struct Itx {
    world: Arc<World>,
    project: Project,
}

impl Itx {
    pub(super) fn new(world: Arc<World>, project: Project) -> Arc<Self> {
        Arc::new(Self { world, project })
    }

    /// Pure addressing: no I/O, and nothing comes into being.
    fn sandbox(&self, args: &[Value]) -> Result<Value, ApiError> {
        let path: SandboxPath = args::text(args, 0, "the sandbox path")?.parse()?;
        let object = SandboxObject::new(Arc::clone(&self.world), self.project.id.clone(), path);
        Ok(Value::Stub(Stub::local(object)))
    }

    fn stream(&self, args: &[Value]) -> Result<Value, ApiError> {
        let path: StreamPath = args::text(args, 0, "the stream path")?.parse()?;
        let object = StreamObject::new(Arc::clone(&self.world), self.project.id.clone(), path);
        Ok(Value::Stub(Stub::local(object)))
    }

    async fn streams(&self) -> Result<Value, ApiError> {
        let mut listing = StreamListing::new("");
        let mut all = Vec::new();
        // Some thousand streams; a project with more pages by prefix.
        for _ in 0..16 {
            let page = self
                .world
                .store
                .list_streams(Some(&self.project.id), listing.clone())
                .await;
            let page = page.map_err(ApiError::from)?;
            let full = page.len() == listing.limit;
            listing.after = page.last().map(|stream| stream.path.clone());
            all.extend(page.into_iter().map(
                |stream| json!({"path": stream.path, "createdAt": stream.created_at, "maxOffset": stream.max_offset}),
            ));
            if !full {
                break;
            }
        }
        plain(&all)
    }
}

impl Target for Itx {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        match names(&path).as_deref() {
            Some(["sandboxes", "get"]) => answer(self.sandbox(&args)),
            Some(["sandboxes", "list"]) => {
                run(async move { plain(&self.world.sandboxes.list(&self.project.id).await?) })
            }
            Some(["streams", "get"]) => answer(self.stream(&args)),
            Some(["streams", "list"]) => run(async move { self.streams().await }),
            _ => answer(Err(no_method("itx", &path))),
        }
    }

    fn get(self: Arc<Self>, path: Path) -> CallFuture {
        match names(&path).as_deref() {
            Some(["projectId"]) => answer(Ok(Value::String(self.project.id.to_string()))),
            Some(["slug"]) => answer(Ok(Value::String(self.project.slug.to_string()))),
            Some(["sandboxes"]) => answer(Ok(Value::Stub(Scoped::stub(self, "sandboxes")))),
            Some(["streams"]) => answer(Ok(Value::Stub(Scoped::stub(self, "streams")))),
            _ => std::future::ready(Err(no_property(&path))).boxed(),
        }
    }
}
