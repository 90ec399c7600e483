//! What every member has beside its path and its content.

use serde::{Deserialize, Serialize};

use crate::{ByteText, Mtime};

/// Owner, mode and time of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// The permission bits with set-user-id, set-group-id and sticky: 0 to 0o7777.
    pub mode: u32,
    /// The user, as the filesystem stores it.
    pub uid: u32,
    /// The group, as the filesystem stores it.
    pub gid: u32,
    /// When the content last changed.
    pub mtime: Mtime,
}

/// One extended attribute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Xattr {
    /// The full name, such as `user.comment`.
    pub name: ByteText,
    /// Any bytes.
    pub value: ByteText,
}
