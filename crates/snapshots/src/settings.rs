//! How a store behaves.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Cancel, Rules, SnapshotId};

/// How a store behaves. `Default` is what hutch runs with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a snapshot can be restored after it was saved; `None` is for
    /// ever. Default 90 days. It is written into each manifest, so a change
    /// holds for later snapshots.
    pub ttl: Option<Duration>,
    /// The zstd level, 1 to 19. Default 1: sleeping is waited for.
    pub level: i32,
    /// Bounds for saving and restoring.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ttl: Some(Duration::from_secs(90 * 24 * 60 * 60)),
            level: 1,
            limits: Limits::default(),
        }
    }
}

/// Bounds for one snapshot, checked when it is saved and when it is restored.
/// What exceeds one is refused with
/// [`SnapshotError::LimitExceeded`](crate::SnapshotError::LimitExceeded).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Entries in one tree. Default 10 million.
    pub entries: u64,
    /// Bytes in one path. Default 1 MiB, far over the kernel's `PATH_MAX`.
    pub path_bytes: u64,
    /// Bytes of extended attributes and other metadata of one entry. Default
    /// 16 MiB.
    pub entry_bytes: u64,
    /// Bytes of the archive before compression, headers included and holes not.
    /// Default 1 TiB. This bounds what a small archive can grow to.
    pub unpacked_bytes: u64,
}

impl Limits {
    /// Those that hold for each member of the archive by itself.
    pub(crate) fn member(&self) -> hutch_pax::Limits {
        hutch_pax::Limits {
            path_bytes: self.path_bytes,
            entry_bytes: self.entry_bytes,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let member = hutch_pax::Limits::default();
        Self {
            entries: 10_000_000,
            path_bytes: member.path_bytes,
            entry_bytes: member.entry_bytes,
            unpacked_bytes: 1 << 40,
        }
    }
}

/// What the caller says about one save.
#[derive(Debug, Clone, Default)]
pub struct SaveMeta {
    /// What to leave out. Default [`Rules::workspace`].
    pub rules: Rules,
    /// The snapshot that the tree was last saved to or restored from. What did
    /// not change since is not written again. One that is not there, or not
    /// fit, costs a full save and nothing else.
    pub base: Option<SnapshotId>,
    /// Free text for the manifest, such as the sandbox and the generation of its
    /// volume. Never put a secret here. Together at most 64 KiB.
    pub labels: BTreeMap<String, String>,
    /// Ends the save early.
    pub cancel: Cancel,
}
