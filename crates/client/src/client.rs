//! The connection and its session.

use crate::{ClientError, Project, decode, transport::Address};
use capnweb::{Connection, Limits, Session, Stub, Transport, Value};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// A session with a server. Cheap to clone; the connection closes when the last
/// clone and everything obtained from it are gone.
#[derive(Debug, Clone)]
pub struct Client {
    link: Arc<Link>,
    session: Stub,
}

/// What keeps a connection going.
#[derive(Debug)]
pub(crate) struct Link {
    connection: Connection,
}

impl Link {
    /// Makes a call and awaits its answer.
    pub(crate) async fn call(
        &self,
        on: &Stub,
        path: &str,
        args: Vec<Value>,
    ) -> Result<Value, ClientError> {
        if self.connection.is_closed() {
            return Err(self.connection.closed().await.error(false).into());
        }
        Ok(on.call(path, args).await?)
    }

    /// Reads a property.
    pub(crate) async fn get(&self, on: &Stub, path: &str) -> Result<Value, ClientError> {
        if self.connection.is_closed() {
            return Err(self.connection.closed().await.error(false).into());
        }
        Ok(on.get(path).await?)
    }

    /// Resolves when the connection has ended.
    pub(crate) async fn closed(&self) -> ClientError {
        self.connection.closed().await.error(true).into()
    }
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
    pub async fn connect(url: &str, token: SecretString) -> Result<Self, ClientError> {
        let limits = Limits::default();
        let transport = Address::parse(url)?.connect(&limits).await?;
        Ok(Self::over(transport, limits, &token))
    }

    /// The same over a transport that is connected already, such as a Unix socket.
    pub fn over(transport: impl Transport, limits: Limits, token: &SecretString) -> Self {
        let (connection, driver) = Session::start(transport, None, limits);
        // Ends by itself with the last reference to the session.
        tokio::spawn(driver);
        let link = Arc::new(Link { connection });
        let credentials = json!({"type": "bearer", "token": token.expose_secret()});
        let session = link
            .connection
            .main()
            .call("authenticate", vec![Value::from_json(credentials)])
            .stub();
        Self { link, session }
    }

    /// Who the token belongs to.
    pub async fn whoami(&self) -> Result<serde_json::Value, ClientError> {
        let answer = self.link.call(&self.session, "whoami", vec![]).await?;
        decode::json("whoami", &answer)
    }

    /// All projects the token reaches.
    pub async fn list_projects(&self) -> Result<Vec<ProjectInfo>, ClientError> {
        let answer = self
            .link
            .call(&self.session, "projects.list", vec![])
            .await?;
        decode::typed("projects.list", &answer)
    }

    /// Makes a project.
    pub async fn create_project(&self, slug: &str) -> Result<ProjectInfo, ClientError> {
        let input = Value::from_json(json!({"slug": slug}));
        let pending = self.session.call("projects.create", vec![input]);
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
        let id = Value::String(id_or_slug.to_owned());
        let itx = self.session.call("projects.get", vec![id]).stub();
        Project::new(self.link.clone(), itx)
    }

    /// The session as an RPC object, for calls that have no method here.
    pub fn session(&self) -> &Stub {
        &self.session
    }
}
