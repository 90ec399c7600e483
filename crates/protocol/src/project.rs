//! Names of projects.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::path::{label_fault, shown};
use crate::{ApiError, ErrorCode};

/// A project's name for people: the rules of a sandbox name, and not in the
/// form of a project id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProjectSlug(String);

impl ProjectSlug {
    /// The project that every data directory has from its first start.
    #[must_use]
    pub fn default_project() -> Self {
        Self("default".into())
    }

    /// The slug as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProjectSlug {
    type Err = ApiError;

    fn from_str(slug: &str) -> Result<Self, ApiError> {
        match label_fault(slug) {
            None => Ok(Self(slug.to_owned())),
            Some(why) => Err(ApiError::new(
                ErrorCode::InvalidName,
                format!(
                    "invalid project slug {:?}: {why}; use 1-63 of a-z, 0-9 and '-', with no '-' at either end",
                    shown(slug)
                ),
            )
            .with("slug", shown(slug))
            .with("reason", why)),
        }
    }
}

impl fmt::Display for ProjectSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ProjectSlug {
    type Error = ApiError;
    fn try_from(text: String) -> Result<Self, ApiError> {
        text.parse()
    }
}

impl From<ProjectSlug> for String {
    fn from(slug: ProjectSlug) -> Self {
        slug.0
    }
}
