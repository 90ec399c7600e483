//! What can go wrong, typed by what a caller does about it.

use std::io;

use rustix::io::Errno;
use time::OffsetDateTime;

use crate::SnapshotId;

/// Which part of a snapshot is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `manifest.json`.
    Manifest,
    /// `entries.jsonl.zst`, the list of entries.
    Listing,
    /// The tree itself: `archive.tar.zst`, or the layers.
    Archive,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Manifest => "manifest",
            Self::Listing => "listing",
            Self::Archive => "archive",
        })
    }
}

/// Which limit of [`Limits`](crate::Limits) was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Entries in the tree.
    Entries,
    /// Bytes in one path.
    PathBytes,
    /// Bytes of metadata of one entry: extended attributes, map of holes.
    EntryBytes,
    /// Bytes of the unpacked archive, headers included.
    UnpackedBytes,
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Entries => "entries",
            Self::PathBytes => "bytes in one path",
            Self::EntryBytes => "bytes of metadata in one entry",
            Self::UnpackedBytes => "unpacked bytes",
        })
    }
}

impl From<hutch_pax::LimitKind> for LimitKind {
    fn from(kind: hutch_pax::LimitKind) -> Self {
        match kind {
            hutch_pax::LimitKind::PathBytes => Self::PathBytes,
            hutch_pax::LimitKind::EntryBytes => Self::EntryBytes,
        }
    }
}

/// Why a snapshot was not saved, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The store has no such snapshot: never saved, or deleted.
    #[error("there is no snapshot {id} in this store")]
    NotFound {
        /// The snapshot asked for.
        id: SnapshotId,
    },
    /// A stored part is cut, damaged or not what its manifest says. Nothing was
    /// unpacked, unless the damage is one that only unpacking can show; then
    /// the target directory is to be thrown away.
    #[error("snapshot {id} is corrupt, its {which} {reason}; an older snapshot may be whole")]
    Corrupt {
        /// The snapshot.
        id: SnapshotId,
        /// The damaged part.
        which: Part,
        /// What does not agree, as the end of a sentence.
        reason: String,
    },
    /// The snapshot was kept for as long as the setting says.
    #[error("snapshot {id} expired at {at}")]
    Expired {
        /// The snapshot.
        id: SnapshotId,
        /// When it expired.
        at: OffsetDateTime,
    },
    /// Written by a newer hutch.
    #[error("{what} has version {found}, this hutch reads version {known}; use a newer hutch")]
    UnsupportedVersion {
        /// What was read: the store or a snapshot.
        what: String,
        /// The version that it has.
        found: u64,
        /// The version that this build reads.
        known: u64,
    },
    /// The disk or the quota is full.
    #[error("no space left while {action}; free some and sleep again")]
    NoSpace {
        /// What was being done.
        action: String,
    },
    /// The tree or the archive is larger than the settings allow.
    #[error("more than {limit} {which}; raise the limit or make the tree smaller")]
    LimitExceeded {
        /// The limit that was met.
        which: LimitKind,
        /// Its value.
        limit: u64,
    },
    /// The directory to restore into holds something already.
    #[error("the directory to restore into is not empty; restore into a new one")]
    NotEmpty,
    /// Another filesystem is mounted within the tree.
    #[error("another filesystem is mounted at {path:?} in the tree; unmount it")]
    ForeignMount {
        /// Where, from the root of the tree.
        path: String,
    },
    /// The caller ended the call.
    #[error("the snapshot call was cancelled")]
    Cancelled,
    /// The operating system refused.
    #[error("{action} failed")]
    Io {
        /// What was being done.
        action: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl SnapshotError {
    /// Wraps an I/O error; a full disk or quota becomes [`Self::NoSpace`].
    pub(crate) fn io(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (action, source) = (action.into(), source.into());
        let full = [Errno::NOSPC, Errno::DQUOT].map(|errno| Some(errno.raw_os_error()));
        if full.contains(&source.raw_os_error()) {
            return Self::NoSpace { action };
        }
        Self::Io { action, source }
    }

    pub(crate) fn limit(which: LimitKind, limit: u64) -> Self {
        Self::LimitExceeded { which, limit }
    }
}
