//! Names and paths of sandboxes and streams.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{ApiError, ErrorCode};

/// How many bytes a stream path may have.
pub const STREAM_PATH_MAX: usize = 512;

/// A sandbox's name: 1–63 of `a-z 0-9 -`, no hyphen at either end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxName(String);

impl SandboxName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a DNS-label-like name is refused, in words, or nothing.
pub(crate) fn label_fault(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() {
        return Some("it is empty".into());
    }
    if let Some(c) = name.chars().find(|c| !allowed(*c)) {
        return Some(format!("{c:?} is not one of a-z, 0-9 and '-'"));
    }
    if name.len() > 63 {
        return Some(format!("it has {} characters, 63 at most", name.len()));
    }
    if name.starts_with('-') || name.ends_with('-') {
        return Some("it begins or ends with '-'".into());
    }
    None
}

/// At most 80 characters of what a caller sent, for a message.
pub(crate) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

impl FromStr for SandboxName {
    type Err = ApiError;

    fn from_str(name: &str) -> Result<Self, ApiError> {
        match label_fault(name) {
            None => Ok(Self(name.to_owned())),
            Some(why) => Err(ApiError::new(
                ErrorCode::InvalidName,
                format!(
                    "invalid sandbox name {:?}: {why}; use 1-63 of a-z, 0-9 and '-', with no '-' at either end",
                    shown(name)
                ),
            )
            .with("name", shown(name))
            .with("reason", why)),
        }
    }
}

impl fmt::Display for SandboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SandboxName {
    type Error = ApiError;
    fn try_from(text: String) -> Result<Self, ApiError> {
        text.parse()
    }
}

impl From<SandboxName> for String {
    fn from(name: SandboxName) -> Self {
        name.0
    }
}

/// A sandbox's address within its project: exactly `/sandboxes/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxPath(SandboxName);

impl SandboxPath {
    /// The path of a name.
    #[must_use]
    pub const fn new(name: SandboxName) -> Self {
        Self(name)
    }

    /// The last segment.
    #[must_use]
    pub const fn name(&self) -> &SandboxName {
        &self.0
    }

    /// The sandbox's own event stream, which has the same path.
    #[must_use]
    pub fn stream(&self) -> StreamPath {
        StreamPath(self.to_string())
    }
}

impl FromStr for SandboxPath {
    type Err = ApiError;

    fn from_str(path: &str) -> Result<Self, ApiError> {
        match path.strip_prefix("/sandboxes/") {
            Some(name) if !name.contains('/') => Ok(Self(name.parse()?)),
            _ => Err(ApiError::new(
                ErrorCode::InvalidPath,
                format!(
                    "sandbox paths are exactly /sandboxes/<name> with a single-segment name, got {:?}",
                    shown(path)
                ),
            )
            .with("path", shown(path))),
        }
    }
}

impl fmt::Display for SandboxPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/sandboxes/{}", self.0)
    }
}

impl TryFrom<String> for SandboxPath {
    type Error = ApiError;
    fn try_from(text: String) -> Result<Self, ApiError> {
        text.parse()
    }
}

impl From<SandboxPath> for String {
    fn from(path: SandboxPath) -> Self {
        path.to_string()
    }
}

/// The canonical path of an event stream, such as `/`, `/sandboxes` or
/// `/notes/today`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StreamPath(String);

impl StreamPath {
    /// The root stream of a project.
    #[must_use]
    pub fn root() -> Self {
        Self("/".into())
    }

    /// The project's catalogue of sandboxes.
    #[must_use]
    pub fn sandboxes() -> Self {
        Self("/sandboxes".into())
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// All ancestors, the root first; none for the root.
    #[must_use]
    pub fn ancestors(&self) -> Vec<Self> {
        if self.0 == "/" {
            return Vec::new();
        }
        let cuts = self.0.char_indices().filter(|(at, c)| *c == '/' && *at > 0);
        let inner = cuts.map(|(at, _)| Self(self.0[..at].to_owned()));
        std::iter::once(Self::root()).chain(inner).collect()
    }

    /// Whether only the server appends here: `/`, `/sandboxes…`, `/secrets…`.
    #[must_use]
    pub fn is_server_only(&self) -> bool {
        let first = self.0.split('/').nth(1).unwrap_or_default();
        matches!(first, "" | "sandboxes" | "secrets")
    }
}

impl FromStr for StreamPath {
    type Err = ApiError;

    /// Trims, adds a leading slash, resolves `.` and `..`, writes a space as
    /// `%20`. Refuses `?`, `#`, `\`, control characters and long paths.
    fn from_str(path: &str) -> Result<Self, ApiError> {
        let refuse = |why: &str| {
            ApiError::new(
                ErrorCode::InvalidPath,
                format!("invalid stream path {:?}: {why}", shown(path)),
            )
            .with("path", shown(path))
        };
        let trimmed = path.trim();
        if trimmed.chars().any(|c| matches!(c, '?' | '#' | '\\')) {
            return Err(refuse("'?', '#' and '\\' are not allowed"));
        }
        if trimmed.chars().any(char::is_control) {
            return Err(refuse("control characters are not allowed"));
        }
        let mut segments: Vec<String> = Vec::new();
        let rest = trimmed.strip_prefix('/').unwrap_or(trimmed);
        for segment in rest.split('/') {
            match segment {
                "" if rest.is_empty() => {}
                "" => return Err(refuse("a segment is empty")),
                "." => {}
                ".." => {
                    segments.pop();
                }
                other => segments.push(other.replace(' ', "%20")),
            }
        }
        let canonical = format!("/{}", segments.join("/"));
        if canonical.len() > STREAM_PATH_MAX {
            return Err(refuse("it has more than 512 bytes"));
        }
        Ok(Self(canonical))
    }
}

impl fmt::Display for StreamPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for StreamPath {
    type Error = ApiError;
    fn try_from(text: String) -> Result<Self, ApiError> {
        text.parse()
    }
}

impl From<StreamPath> for String {
    fn from(path: StreamPath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_sandbox_path_has_one_segment_of_the_allowed_letters() {
        let path: SandboxPath = "/sandboxes/main-2".parse().unwrap();
        assert_eq!(path.to_string(), "/sandboxes/main-2");
        let long = format!("/sandboxes/{}", "a".repeat(64));
        for (bad, code) in [
            ("/sandboxes/", ErrorCode::InvalidName),
            ("/sandboxes/-a", ErrorCode::InvalidName),
            ("/sandboxes/a-", ErrorCode::InvalidName),
            ("/sandboxes/A", ErrorCode::InvalidName),
            ("/sandboxes/a b", ErrorCode::InvalidName),
            ("/sandboxes/é", ErrorCode::InvalidName),
            ("/sandboxes/..", ErrorCode::InvalidName),
            (long.as_str(), ErrorCode::InvalidName),
            ("/sandboxes/a/b", ErrorCode::InvalidPath),
            ("sandboxes/a", ErrorCode::InvalidPath),
            ("a", ErrorCode::InvalidPath),
            ("", ErrorCode::InvalidPath),
        ] {
            assert_eq!(bad.parse::<SandboxPath>().unwrap_err().code, code, "{bad}");
        }
    }

    #[test]
    fn stream_paths_become_canonical() {
        for (given, canonical) in [
            ("", "/"),
            ("/", "/"),
            (" notes ", "/notes"),
            ("/a/./b/../c", "/a/c"),
            ("/../../a", "/a"),
            ("/a b", "/a%20b"),
        ] {
            assert_eq!(given.parse::<StreamPath>().unwrap().as_str(), canonical);
        }
        for bad in ["/a?b", "/a#b", "/a\\b", "/a//b", "/a/", "/a\nb"] {
            assert!(bad.parse::<StreamPath>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ancestors_come_root_first() {
        let path: StreamPath = "/a/b/c".parse().unwrap();
        let names: Vec<String> = path.ancestors().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["/", "/a", "/a/b"]);
        assert!(StreamPath::root().ancestors().is_empty());
    }

    #[test]
    fn only_the_server_appends_to_its_own_streams() {
        for path in [
            "/",
            "/sandboxes",
            "/sandboxes/x",
            "/secrets/a",
            "/x/../secrets",
        ] {
            assert!(
                path.parse::<StreamPath>().unwrap().is_server_only(),
                "{path}"
            );
        }
        for path in ["/sandboxesx", "/notes/sandboxes"] {
            assert!(
                !path.parse::<StreamPath>().unwrap().is_server_only(),
                "{path}"
            );
        }
    }
}
