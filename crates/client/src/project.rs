//! One project: its sandboxes and streams.

use crate::{ClientError, EventStream, Sandbox, decode, link::Remote};
use capnweb::{Stub, Value};
use serde::{Deserialize, Serialize};

/// A project, addressed.
#[derive(Debug, Clone)]
pub struct Project {
    itx: Remote,
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

/// An event stream as its project lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamInfo {
    /// Its path, such as `/notes`.
    pub path: String,
    /// When its first event was appended, RFC 3339.
    #[serde(default)]
    pub created_at: Option<String>,
    /// Offset of the newest event.
    #[serde(default)]
    pub max_offset: u64,
}

impl SandboxInfo {
    /// Whether the sandbox is gone and its name retired.
    pub fn is_destroyed(&self) -> bool {
        self.status.as_deref() == Some("destroyed")
    }
}

impl Project {
    pub(crate) fn new(itx: Remote) -> Self {
        Self { itx }
    }

    /// The project's id, `prj_…`.
    ///
    /// # Errors
    /// PROJECT_NOT_FOUND where there is none.
    pub async fn id(&self) -> Result<String, ClientError> {
        let answer = self.itx.get("projectId").await?;
        decode::typed("projectId", &answer)
    }

    /// Every sandbox that was ever made in the project, destroyed ones too.
    ///
    /// # Errors
    /// PROJECT_NOT_FOUND.
    pub async fn list_sandboxes(&self) -> Result<Vec<SandboxInfo>, ClientError> {
        let answer = self.itx.call("sandboxes.list", vec![]).await?;
        decode::typed("sandboxes.list", &answer)
    }

    /// Addresses a sandbox by its path, `/sandboxes/<name>`. Costs nothing; a
    /// wrong path shows at the first call.
    pub fn sandbox(&self, path: &str) -> Sandbox {
        Sandbox::new(self.itx.below("sandboxes.get", path), path)
    }

    /// Every event stream of the project that has an event, by path.
    ///
    /// # Errors
    /// PROJECT_NOT_FOUND.
    pub async fn list_streams(&self) -> Result<Vec<StreamInfo>, ClientError> {
        let answer = self.itx.call("streams.list", vec![]).await?;
        decode::typed("streams.list", &answer)
    }

    /// Addresses an event stream by its path. Costs nothing and makes nothing.
    pub fn stream(&self, path: &str) -> EventStream {
        EventStream::new(self.itx.below("streams.get", path))
    }

    /// Makes sure that the project exists and answers it as an RPC object, which
    /// belongs to the connection of this moment.
    ///
    /// # Errors
    /// PROJECT_NOT_FOUND.
    pub async fn open(&self) -> Result<Stub, ClientError> {
        match self.itx.get("").await? {
            Value::Stub(itx) => Ok(itx),
            _ => Err(ClientError::Shape {
                call: "projects.get".to_owned(),
                reason: "no object".to_owned(),
            }),
        }
    }
}
