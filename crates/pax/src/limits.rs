//! How much one member may take.

/// Bounds for what a reader keeps of one member. What exceeds one is refused
/// with [`PaxError::Limit`](crate::PaxError::Limit). How many members there are
/// and how much content they have is for the caller, who reads as far as it
/// wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in one path. Default 1 MiB, far over the kernel's `PATH_MAX`.
    pub path_bytes: u64,
    /// Bytes of extended attributes and other metadata of one member. Default
    /// 16 MiB.
    pub entry_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            path_bytes: 1 << 20,
            entry_bytes: 16 << 20,
        }
    }
}

/// Which limit of [`Limits`] was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Bytes in one path.
    PathBytes,
    /// Bytes of metadata of one member: extended attributes, map of holes.
    EntryBytes,
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PathBytes => "bytes in one path",
            Self::EntryBytes => "bytes of metadata in one entry",
        })
    }
}
