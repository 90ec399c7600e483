//! One project: its sandboxes and streams.

use crate::{ClientError, EventStream, Sandbox, client::Link, decode};
use capnweb::{Stub, Value};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A project, addressed.
#[derive(Debug, Clone)]
pub struct Project {
    link: Arc<Link>,
    itx: Stub,
}

/// A sandbox as its project lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxInfo {
    /// `/sandboxes/<name>`.
    pub path: String,
    /// created, running, stopped or destroyed; `None` while its creation is unfinished.
    #[serde(default)]
    pub status: Option<String>,
    /// Instance type, fixed for life.
    #[serde(default)]
    pub instance_type: Option<String>,
    /// When it was made, RFC 3339.
    #[serde(default)]
    pub created_at: Option<String>,
}

impl SandboxInfo {
    /// Whether the sandbox is gone and its name retired.
    pub fn is_destroyed(&self) -> bool {
        self.status.as_deref() == Some("destroyed")
    }
}

impl Project {
    pub(crate) fn new(link: Arc<Link>, itx: Stub) -> Self {
        Self { link, itx }
    }

    /// The project's id, `prj_…`. Fails with PROJECT_NOT_FOUND where there is none.
    pub async fn id(&self) -> Result<String, ClientError> {
        let answer = self.link.get(&self.itx, "projectId").await?;
        decode::typed("projectId", &answer)
    }

    /// Every sandbox that was ever made in the project, destroyed ones too.
    pub async fn list_sandboxes(&self) -> Result<Vec<SandboxInfo>, ClientError> {
        let answer = self.link.call(&self.itx, "sandboxes.list", vec![]).await?;
        decode::typed("sandboxes.list", &answer)
    }

    /// Addresses a sandbox by its path, `/sandboxes/<name>`. Costs nothing; a
    /// wrong path shows at the first call.
    pub fn sandbox(&self, path: &str) -> Sandbox {
        let argument = Value::String(path.to_owned());
        let handle = self.itx.call("sandboxes.get", vec![argument]).stub();
        Sandbox::new(self.link.clone(), handle, path)
    }

    /// Addresses an event stream by its path.
    pub fn stream(&self, path: &str) -> EventStream {
        let argument = Value::String(path.to_owned());
        let stream = self.itx.call("streams.get", vec![argument]).stub();
        EventStream::new(self.link.clone(), stream)
    }

    /// Makes sure that the project exists and answers it as an RPC object.
    pub async fn open(&self) -> Result<Stub, ClientError> {
        match self.link.get(&self.itx, "").await? {
            Value::Stub(itx) => Ok(itx),
            _ => Err(ClientError::Shape {
                call: "projects.get".to_owned(),
                reason: "no object".to_owned(),
            }),
        }
    }

    /// The project as an RPC object, for calls that have no method here.
    pub fn itx(&self) -> &Stub {
        &self.itx
    }
}
