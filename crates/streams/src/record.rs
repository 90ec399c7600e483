//! Records: JSON documents with a revision, beside the events.

use hutch_protocol::{ProjectId, Timestamp};
use serde_json::Value;

/// Which record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordId {
    /// What it describes, such as `sandbox`.
    pub kind: String,
    /// The project it belongs to; none for the deployment.
    pub project: Option<ProjectId>,
    /// Its name among those of its kind and project.
    pub key: String,
}

impl RecordId {
    /// A project's record.
    pub fn new(kind: impl Into<String>, project: &ProjectId, key: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            project: Some(project.clone()),
            key: key.into(),
        }
    }

    /// A record of the deployment itself.
    pub fn deployment(kind: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            project: None,
            key: key.into(),
        }
    }

    pub(crate) fn project_text(&self) -> &str {
        self.project.as_ref().map_or("", ProjectId::as_str)
    }
}

/// A stored document.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Which record.
    pub id: RecordId,
    /// Names this content. Revisions are unique in the database and grow, so a
    /// deleted and re-made record never has an old one.
    pub revision: u64,
    /// The schema version of the document.
    pub version: u32,
    /// The document.
    pub json: Value,
    /// When it was written, by the host's clock.
    pub updated_at: Timestamp,
}

/// Whose records a listing returns.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Those of all projects and of the deployment.
    All,
    /// Those of one project.
    Project(&'a ProjectId),
    /// Those of the deployment itself.
    Deployment,
}

impl Scope<'_> {
    /// The project as the database spells it; none for all.
    pub(crate) fn project_text(self) -> Option<String> {
        match self {
            Self::All => None,
            Self::Project(project) => Some(project.to_string()),
            Self::Deployment => Some(String::new()),
        }
    }
}
