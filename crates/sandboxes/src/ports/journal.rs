//! The durable memory: events and records.

use futures_util::future::BoxFuture;
use hutch_protocol::event::{CreateRequested, SandboxEvent};
use hutch_protocol::{ProjectId, SandboxPath};

use crate::record::{SandboxKey, SandboxRecord};

/// The store could not do it; nothing was written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the event store failed: {0}")]
pub struct JournalError(pub String);

/// How an attempt at birth ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BirthOutcome {
    /// The sandbox is born; the offset of its last birth event.
    Born(u64),
    /// Somebody else has the name, by an equal or another claim.
    Taken,
}

/// Events and records, written together or not at all.
pub trait Journal: Send + Sync + 'static {
    /// Claims the name and writes the birth batch and the record, atomically.
    /// The claim goes to the project's `/sandboxes` stream, keyed by path; an
    /// equal claim without a record is taken over.
    fn birth(
        &self,
        claim: CreateRequested,
        events: Vec<SandboxEvent>,
        record: SandboxRecord,
    ) -> BoxFuture<'_, Result<BirthOutcome, JournalError>>;

    /// The claim on a path, if there is one.
    fn claim(
        &self,
        project: ProjectId,
        path: SandboxPath,
    ) -> BoxFuture<'_, Result<Option<CreateRequested>, JournalError>>;

    /// Writes a record and appends its events to its stream, atomically. Gives
    /// the stream's last offset.
    fn commit(
        &self,
        record: SandboxRecord,
        events: Vec<SandboxEvent>,
    ) -> BoxFuture<'_, Result<u64, JournalError>>;

    /// Appends one event that is only a note; gives its offset.
    fn note(
        &self,
        key: SandboxKey,
        event: SandboxEvent,
    ) -> BoxFuture<'_, Result<u64, JournalError>>;

    /// The record of one sandbox.
    fn record(&self, key: SandboxKey)
    -> BoxFuture<'_, Result<Option<SandboxRecord>, JournalError>>;

    /// The records of one project, or of all.
    fn records(
        &self,
        project: Option<ProjectId>,
    ) -> BoxFuture<'_, Result<Vec<SandboxRecord>, JournalError>>;
}
