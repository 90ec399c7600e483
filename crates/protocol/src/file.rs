//! The shapes of files and directories.

use serde::{Deserialize, Serialize};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the official names say it")]
pub enum FileKind {
    File,
    Directory,
    Symlink,
    Other,
}

/// What the owner may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the official names say it")]
pub struct Permissions {
    pub readable: bool,
    pub writable: bool,
    pub executable: bool,
}

/// One entry of a listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileInfo {
    /// The last segment.
    pub name: String,
    /// From the root.
    pub absolute_path: String,
    /// From the listed directory.
    pub relative_path: String,
    /// What it is; links are not followed.
    pub r#type: FileKind,
    /// Bytes.
    pub size: u64,
    /// RFC 3339.
    pub modified_at: String,
    /// Such as `rwxr-xr-x`.
    pub mode: String,
    /// The owner's bits.
    pub permissions: Permissions,
}
