//! What is stored of a key.

use hutch_protocol::{ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use super::token::{KeyId, SecretHash};

/// The version of [`KeyRecord`] that this code writes.
pub(super) const RECORD_VERSION: u32 = 1;

/// One key. Its secret is not here, only a hash of it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyRecord {
    pub(super) id: KeyId,
    pub(super) hash: SecretHash,
    pub(super) label: Option<String>,
    /// The only project it opens; none for all.
    pub(super) project: Option<ProjectId>,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) last_used_at: Option<Timestamp>,
    pub(super) revoked_at: Option<Timestamp>,
}

/// What a listing shows of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyDescription {
    pub(crate) id: KeyId,
    pub(crate) label: Option<String>,
    pub(crate) project: Option<ProjectId>,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    /// To the minute.
    pub(crate) last_used_at: Option<Timestamp>,
    pub(crate) revoked_at: Option<Timestamp>,
    /// Whether it opens anything now.
    pub(crate) valid: bool,
}

impl KeyRecord {
    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| now < at)
    }

    pub(super) fn describe(&self, now: Timestamp) -> KeyDescription {
        KeyDescription {
            id: self.id.clone(),
            label: self.label.clone(),
            project: self.project.clone(),
            created_at: self.created_at,
            expires_at: self.expires_at,
            last_used_at: self.last_used_at,
            revoked_at: self.revoked_at,
            valid: self.is_valid(now),
        }
    }
}
