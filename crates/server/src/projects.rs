//! Projects: an id for ever and a slug for people.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use hutch_protocol::{ApiError, ErrorCode, ProjectId, ProjectSlug, StreamPath, Timestamp};
use hutch_streams::{Append, Expect, NewEvent, RecordId, Scope, Store, StoreError, Transaction};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

const KIND: &str = "project";
/// One record for each slug makes slugs unique whoever races.
const SLUG_KIND: &str = "project-slug";
const RECORD_VERSION: u32 = 1;

/// One project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Project {
    pub(crate) id: ProjectId,
    pub(crate) slug: ProjectSlug,
    pub(crate) created_at: Timestamp,
}

/// What a caller hears of a project that does not exist, or that its key does
/// not open.
pub(crate) fn unknown_project(id_or_slug: &str) -> ApiError {
    let shown: String = id_or_slug.chars().take(80).collect();
    let message = format!(
        "project {shown:?} does not exist; `hutch project list` shows those that do, `hutch project create` makes one"
    );
    ApiError::new(ErrorCode::ProjectNotFound, message).with("project", shown)
}

/// All projects of a data directory; small enough to be kept in memory.
pub(crate) struct Projects {
    store: Store,
    known: RwLock<HashMap<ProjectSlug, Project>>,
}

impl Projects {
    /// Reads them, making `default` at the first start.
    pub(crate) async fn open(store: Store) -> Result<Self, StoreError> {
        let mut known = HashMap::new();
        for record in store.records(KIND, Scope::All).await? {
            let project: Project = serde_json::from_value(record.json).map_err(|error| {
                StoreError::Damaged(format!("project {}: {error}", record.id.key))
            })?;
            known.insert(project.slug.clone(), project);
        }
        let empty = known.is_empty();
        let projects = Self {
            store,
            known: RwLock::new(known),
        };
        if empty {
            projects.insert(ProjectSlug::default_project()).await?;
        }
        Ok(projects)
    }

    /// Finds a project by id or slug.
    pub(crate) fn get(&self, id_or_slug: &str) -> Result<Project, ApiError> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.values().find(|project| {
            project.slug.as_str() == id_or_slug || project.id.as_str() == id_or_slug
        });
        found.cloned().ok_or_else(|| unknown_project(id_or_slug))
    }

    /// All projects, by slug.
    pub(crate) fn list(&self) -> Vec<Project> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Project> = known.values().cloned().collect();
        all.sort_by(|a, b| a.slug.cmp(&b.slug));
        all
    }

    /// Makes a project.
    pub(crate) async fn create(&self, slug: ProjectSlug) -> Result<Project, ApiError> {
        let made = self.insert(slug.clone()).await;
        made.map_err(|error| match error {
            StoreError::RecordConflict { .. } => ApiError::new(
                ErrorCode::ProjectAlreadyExists,
                format!("project {slug} already exists; use it, or pick another slug"),
            )
            .with("slug", slug.to_string()),
            other => other.into(),
        })
    }

    async fn insert(&self, slug: ProjectSlug) -> Result<Project, StoreError> {
        let project = Project {
            id: ProjectId::random(),
            slug,
            created_at: Timestamp::now(),
        };
        let document = serde_json::to_value(&project)
            .map_err(|error| StoreError::Invalid(error.to_string()))?;
        let mut payload = Map::new();
        payload.insert("slug".into(), json!(project.slug));
        let created = NewEvent::new("project/created", payload)
            .key(format!("project/created:{}", project.id));
        let by_slug = RecordId::deployment(SLUG_KIND, project.slug.as_str());
        let by_id = RecordId::new(KIND, &project.id, project.id.as_str());
        let transaction = Transaction::new()
            .append(Append::one(&project.id, &StreamPath::root(), created))
            .write(
                by_slug,
                RECORD_VERSION,
                json!({ "id": project.id }),
                Expect::Absent,
            )
            .write(by_id, RECORD_VERSION, document, Expect::Absent);
        self.store.commit(transaction).await?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(project.slug.clone(), project.clone());
        Ok(project)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_store_that_refuses_is_named_by_its_own_code() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let projects = Projects::open(store.clone()).await.unwrap();
        store.close().await;
        let refused = projects.create("acme".parse().unwrap()).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::OperationInterrupted);
    }
}
