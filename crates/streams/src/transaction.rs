//! What one atomic commit holds.

use hutch_protocol::{ProjectId, StreamPath};
use serde_json::Value;

use crate::event::{Committed, NewEvent, StreamKey};
use crate::record::{Record, RecordId};

/// Events for one stream, in order.
#[derive(Clone, Debug)]
pub struct Append {
    /// The stream.
    pub stream: StreamKey,
    /// The events, possibly none.
    pub events: Vec<NewEvent>,
}

impl Append {
    /// Events for a project's stream.
    #[must_use]
    pub fn new(project: &ProjectId, path: &StreamPath, events: Vec<NewEvent>) -> Self {
        Self {
            stream: StreamKey::new(project, path),
            events,
        }
    }

    /// One event for a project's stream.
    #[must_use]
    pub fn one(project: &ProjectId, path: &StreamPath, event: NewEvent) -> Self {
        Self::new(project, path, vec![event])
    }
}

/// What must hold for a record before it is written or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is no such record.
    Absent,
    /// Anything.
    Any,
    /// The record has exactly this revision.
    Revision(u64),
}

/// Writes one record whole.
#[derive(Clone, Debug)]
pub struct RecordWrite {
    /// Which record.
    pub id: RecordId,
    /// The schema version of the document, the caller's business.
    pub version: u32,
    /// The document.
    pub json: Value,
    /// What must hold.
    pub expect: Expect,
}

/// Deletes one record. Deleting what is not there is fine under
/// [`Expect::Any`].
#[derive(Clone, Debug)]
pub struct RecordDelete {
    /// Which record.
    pub id: RecordId,
    /// What must hold.
    pub expect: Expect,
}

/// Events and records that are committed together or not at all.
///
/// Appends apply first, then writes, then deletes, each in order.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Events; the same stream may come more than once.
    pub appends: Vec<Append>,
    /// Records to write.
    pub writes: Vec<RecordWrite>,
    /// Records to delete.
    pub deletes: Vec<RecordDelete>,
}

impl Transaction {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same transaction with one more append.
    #[must_use]
    pub fn append(mut self, append: Append) -> Self {
        self.appends.push(append);
        self
    }

    /// The same transaction with one more record to write.
    #[must_use]
    pub fn write(mut self, id: RecordId, version: u32, json: Value, expect: Expect) -> Self {
        self.writes.push(RecordWrite {
            id,
            version,
            json,
            expect,
        });
        self
    }

    /// The same transaction with one more record to delete.
    #[must_use]
    pub fn delete(mut self, id: RecordId, expect: Expect) -> Self {
        self.deletes.push(RecordDelete { id, expect });
        self
    }
}

/// What a commit did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// One list for each append, aligned with its events.
    pub appends: Vec<Vec<Committed>>,
    /// The written records, aligned with the writes.
    pub records: Vec<Record>,
}

impl Outcome {
    /// All committed events in the order they were offered.
    pub fn events(&self) -> impl Iterator<Item = &Committed> {
        self.appends.iter().flatten()
    }
}
