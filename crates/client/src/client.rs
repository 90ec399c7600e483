//! The connection and its session.

use crate::{
    ClientError, Project, decode,
    keys::{Key, NewKey, NewKeyOptions},
    link::{Link, Remote},
};
use capnweb::{Limits, Stub, Transport, Value};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// A session with a server. Cheap to clone; the connection closes when the last
/// clone and everything obtained from it are gone.
///
/// When the connection ends, the calls that are open fail with
/// [`ClientError::Interrupted`], which says whether they may have run. Nothing is
/// repeated. The next call on this or on anything obtained from it connects again.
#[derive(Debug, Clone)]
pub struct Client {
    session: Remote,
}

/// A project as the server lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectInfo {
    /// `prj_…`, fixed for life.
    #[serde(alias = "projectId")]
    pub id: String,
    /// The name people use.
    pub slug: String,
    /// When it was made, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

impl Client {
    /// Connects to `http://HOST:PORT` and authenticates. A wrong token shows at
    /// the first call: this waits for the transport only.
    ///
    /// # Errors
    /// [`ClientError::Address`] for an address that cannot be used, and
    /// [`ClientError::Connect`] when nobody answers there within 10 s.
    pub async fn connect(url: &str, token: SecretString) -> Result<Self, ClientError> {
        Ok(Self::on(Link::connect(url, token).await?))
    }

    /// The same over a transport that is connected already, such as a Unix
    /// socket. This client cannot connect again: after the end of the transport
    /// every call fails.
    pub fn over(transport: impl Transport, limits: Limits, token: &SecretString) -> Self {
        Self::on(Link::over(transport, limits, token))
    }

    fn on(link: Link) -> Self {
        Self {
            session: Remote::session(Arc::new(link)),
        }
    }

    /// Who the token belongs to, such as `{"type": "admin", "projects": "all"}`.
    ///
    /// # Errors
    /// UNAUTHENTICATED for a wrong token.
    pub async fn whoami(&self) -> Result<serde_json::Value, ClientError> {
        let answer = self.session.call("whoami", vec![]).await?;
        decode::json("whoami", &answer)
    }

    /// All projects that the token reaches.
    ///
    /// # Errors
    /// UNAUTHENTICATED for a wrong token.
    pub async fn list_projects(&self) -> Result<Vec<ProjectInfo>, ClientError> {
        let answer = self.session.call("projects.list", vec![]).await?;
        decode::typed("projects.list", &answer)
    }

    /// Makes a project.
    ///
    /// # Errors
    /// PROJECT_ALREADY_EXISTS, and VALIDATION_FAILED for a slug that is none.
    pub async fn create_project(&self, slug: &str) -> Result<ProjectInfo, ClientError> {
        let input = Value::from_json(json!({"slug": slug}));
        let (_wire, session) = self.session.find().await?;
        let pending = session.call("projects.create", vec![input]);
        let itx = pending.stub();
        // The id is read in the same round trip as the creation.
        let id = itx.get("projectId");
        pending.await?;
        let id = id.await?;
        Ok(ProjectInfo {
            id: decode::typed("projects.create", &id)?,
            slug: slug.to_owned(),
            created_at: None,
        })
    }

    /// Addresses a project by slug or id. Costs nothing; one that does not exist
    /// shows at the first call.
    pub fn project(&self, id_or_slug: &str) -> Project {
        Project::new(self.session.below("projects.get", id_or_slug))
    }

    /// Makes an access key. Its token is in the answer and nowhere else, ever again.
    ///
    /// # Errors
    /// FORBIDDEN for a key that may not make keys, PROJECT_NOT_FOUND.
    pub async fn create_key(&self, options: &NewKeyOptions) -> Result<NewKey, ClientError> {
        let input = options.to_value();
        let answer = self.session.call("keys.create", vec![input]).await?;
        decode::typed("keys.create", &answer)
    }

    /// The access keys, without their tokens.
    ///
    /// # Errors
    /// FORBIDDEN for a key that may not see keys.
    pub async fn list_keys(&self) -> Result<Vec<Key>, ClientError> {
        let answer = self.session.call("keys.list", vec![]).await?;
        decode::typed("keys.list", &answer)
    }

    /// Takes an access key back and closes the connections that were opened with it.
    ///
    /// # Errors
    /// What the server says of an id that it does not know.
    pub async fn revoke_key(&self, id: &str) -> Result<(), ClientError> {
        let args = vec![Value::String(id.to_owned())];
        self.session.call("keys.revoke", args).await.map(drop)
    }

    /// The session as an RPC object, for calls that have no method here. It
    /// belongs to the connection of this moment, and ends with it.
    ///
    /// # Errors
    /// [`ClientError::Connect`] when the connection had ended and no new one was made.
    pub async fn session(&self) -> Result<Stub, ClientError> {
        Ok(self.session.find().await?.1)
    }
}
