//! What can go wrong, by what a caller does about it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::event::{Event, StreamKey};
use crate::record::RecordId;

/// The data directory's database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store of this one, has it open.
    #[error("{path} is in use by another server; stop it, or name another data directory")]
    InUse {
        /// The database.
        path: PathBuf,
    },
    /// A newer hutch has written it.
    #[error(
        "{path} has schema version {found}, this hutch knows {supported} and older; start a newer hutch, or name another data directory"
    )]
    NewerVersion {
        /// The database.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The newest version this build knows.
        supported: i64,
    },
    /// It is a database of some other program.
    #[error("{path} is not a database of hutch; name another data directory")]
    NotOurs {
        /// The database.
        path: PathBuf,
    },
    /// The file system cannot hold a write-ahead log.
    #[error(
        "{path} cannot have a write-ahead log (SQLite offers {mode:?}); use a data directory on a local disk"
    )]
    NoWriteAheadLog {
        /// The database.
        path: PathBuf,
        /// The journal mode that SQLite kept.
        mode: String,
    },
    /// The directory or the lock file could not be used.
    #[error("cannot use {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot open the database {path}")]
    Database {
        /// The database.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
}

/// A commit or read failed. A failed commit changed nothing, but for
/// [`StoreError::Database`], whose outcome at the very commit is unknown.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The request is malformed. Nothing was tried.
    #[error("{0}")]
    Invalid(String),
    /// Something is larger than its limit. Nothing was tried.
    #[error("{what} has {actual} {unit}, {limit} at most")]
    TooLarge {
        /// What is too large.
        what: String,
        /// What is counted: `bytes`, `events`, `levels`…
        unit: &'static str,
        /// How many it has.
        actual: usize,
        /// How many it may have.
        limit: usize,
    },
    /// An event was to get a certain offset, but another is next. Clients
    /// know it as `StreamOffsetConflictError`.
    #[error("expected next offset {expected}, found {found}")]
    OffsetConflict {
        /// The stream.
        stream: StreamKey,
        /// The offset that the caller expected.
        expected: u64,
        /// The offset that is next.
        found: u64,
    },
    /// The key names an event with another type, payload or metadata.
    #[error("idempotency key \"{key}\" already names a different event at offset {}", .existing.offset)]
    IdempotencyConflict {
        /// The stream.
        stream: StreamKey,
        /// The key.
        key: String,
        /// The event that has it.
        existing: Box<Event>,
    },
    /// The key names an equal event, but not at the offset that was expected.
    #[error("idempotency hit at offset {}, got {expected}", .existing.offset)]
    IdempotencyOffset {
        /// The stream.
        stream: StreamKey,
        /// The offset that the caller expected.
        expected: u64,
        /// The event that has the key.
        existing: Box<Event>,
    },
    /// A record was not as expected.
    #[error("record {} {:?} is at {}, not as expected", .id.kind, .id.key, revision_text(.found))]
    RecordConflict {
        /// Which record.
        id: RecordId,
        /// Its revision; none when there is no such record.
        found: Option<u64>,
    },
    /// No event came in time.
    #[error(
        "stream-wait-timeout: Timed out waiting for stream event on {path} after offset {after_offset}"
    )]
    WaitTimeout {
        /// The stream's path.
        path: String,
        /// The offset after which an event was awaited.
        after_offset: u64,
    },
    /// Too many live subscriptions are open.
    #[error("{limit} live subscriptions are open, which is the limit; close some")]
    TooManySubscriptions {
        /// How many may be open.
        limit: usize,
    },
    /// The store was closed, or its writer has ended.
    #[error("the event store is closed")]
    Closed,
    /// The database failed. After a failed commit the outcome is unknown:
    /// read before trying again.
    #[error("the event store's database failed: {0}")]
    Database(Arc<rusqlite::Error>),
    /// A stored row is not as hutch writes it.
    #[error("the event store holds a damaged row: {0}")]
    Damaged(String),
}

fn revision_text(found: &Option<u64>) -> String {
    found.map_or_else(
        || "no revision (absent)".into(),
        |found| format!("revision {found}"),
    )
}

impl StoreError {
    /// The name that clients of event streams match on, where there is one.
    #[must_use]
    pub const fn name(&self) -> Option<&'static str> {
        match self {
            Self::OffsetConflict { .. } => Some("StreamOffsetConflictError"),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(Arc::new(error))
    }
}
