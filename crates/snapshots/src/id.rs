//! The name of a snapshot.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The name of one snapshot: a random UUID (version 4), written in lower case
/// with hyphens. It says nothing about the sandbox, so a copied archive gives
/// no identity away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SnapshotId(Uuid);

impl SnapshotId {
    /// A new name, never used before.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

/// The text is not the name of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a snapshot id (a UUID in lower case with hyphens)")]
pub struct InvalidSnapshotId(String);

impl From<SnapshotId> for String {
    fn from(id: SnapshotId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for SnapshotId {
    type Error = InvalidSnapshotId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for SnapshotId {
    type Err = InvalidSnapshotId;

    /// Reads the one accepted spelling, the one that `Display` writes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match Uuid::try_parse(text) {
            Ok(uuid) if Self(uuid).to_string() == text => Ok(Self(uuid)),
            _ => Err(InvalidSnapshotId(text.to_owned())),
        }
    }
}
