//! Identifiers that hutch makes itself.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The text is not an identifier of this kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {kind}: {text:?}")]
pub struct InvalidId {
    kind: &'static str,
    text: String,
}

/// A project's permanent id: `prj_` and 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProjectId(String);

impl ProjectId {
    /// A new random id.
    #[must_use]
    pub fn random() -> Self {
        Self(format!("prj_{}", Uuid::new_v4().simple()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProjectId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let digits = text.strip_prefix("prj_").unwrap_or_default();
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() == 32 && digits.bytes().all(hex) {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidId {
            kind: "project id",
            text: text.chars().take(80).collect(),
        })
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Uuid);

        impl $name {
            /// A new random id.
            #[must_use]
            pub fn random() -> Self {
                Self(Uuid::new_v4())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let invalid = || InvalidId { kind: $kind, text: text.chars().take(80).collect() };
                let id = Uuid::try_parse(text).map_err(|_| invalid())?;
                // One spelling only, since these ids become file names.
                if id.hyphenated().to_string() == text { Ok(Self(id)) } else { Err(invalid()) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> { text.parse() }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self { id.to_string() }
        }
    };
}

uuid_id!(
    /// One incarnation of a sandbox's machine, from start to exit.
    BootId,
    "boot id"
);
uuid_id!(
    /// One snapshot of a workspace.
    BackupId,
    "backup id"
);

impl fmt::Display for ProjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ProjectId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<ProjectId> for String {
    fn from(id: ProjectId) -> Self {
        id.0
    }
}

/// A number that grows by one with each new server on a data directory, or
/// with each new content of a volume. Late work of an older one is refused.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl Generation {
    /// The generation after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ids_read_back() {
        let project = ProjectId::random();
        assert_eq!(project.as_str().parse::<ProjectId>().unwrap(), project);
        let boot = BootId::random();
        assert_eq!(boot.to_string().parse::<BootId>().unwrap(), boot);
    }

    #[test]
    fn other_spellings_are_refused() {
        let boot = BootId::random().to_string();
        for text in [
            boot.to_uppercase(),
            boot.replace('-', ""),
            format!("{{{boot}}}"),
        ] {
            assert!(text.parse::<BootId>().is_err(), "{text}");
        }
        for text in [
            "",
            "prj_",
            "prj_XYZ",
            "../prj_",
            "prj_0123456789abcdef0123456789abcdeG",
        ] {
            assert!(text.parse::<ProjectId>().is_err(), "{text}");
        }
    }
}
