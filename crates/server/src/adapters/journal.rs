//! The domain's memory on the event store.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hutch_protocol::event::{CreateRequested, SandboxEvent};
use hutch_protocol::{ProjectId, SandboxPath, StreamPath};
use hutch_sandboxes::ports::{BirthOutcome, Journal, JournalError};
use hutch_sandboxes::{SandboxKey, SandboxRecord, record::RECORD_VERSION};
use hutch_streams::{
    Append, EventRef, Expect, NewEvent, Outcome, RecordId, Scope, Store, StoreError, StreamKey,
    Transaction,
};

const KIND: &str = "sandbox";

/// Events and records of sandboxes in one store.
pub(crate) struct StreamJournal {
    store: Store,
}

impl StreamJournal {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Puts the stream's true last offset into a record: notes after the last
    /// commit have moved it on.
    async fn refreshed(&self, mut record: SandboxRecord) -> Result<SandboxRecord, JournalError> {
        let head = self
            .store
            .head(&stream(&record.key))
            .await
            .map_err(failed)?;
        record.offset = head.map_or(0, |head| head.max_offset);
        Ok(record)
    }
}

fn failed(error: StoreError) -> JournalError {
    JournalError(error.to_string())
}

fn stream(key: &SandboxKey) -> StreamKey {
    StreamKey::new(&key.project, &key.path.stream())
}

fn record_id(key: &SandboxKey) -> RecordId {
    RecordId::new(KIND, &key.project, key.path.name().as_str())
}

fn claim_key(path: &SandboxPath) -> String {
    format!("sandbox-create-requested:{path}")
}

fn event(event: &SandboxEvent) -> Result<NewEvent, JournalError> {
    let (name, payload) = event
        .to_parts()
        .map_err(|error| JournalError(error.to_string()))?;
    Ok(NewEvent::new(name, payload))
}

/// The keys that make a birth happen once, whoever repeats it.
fn birth_event(key: &SandboxKey, born: &SandboxEvent) -> Result<NewEvent, JournalError> {
    let place = format!("{}:{}", key.project, key.path);
    Ok(match born {
        SandboxEvent::Created { .. } => event(born)?.key(format!("sandbox/created:{place}")),
        SandboxEvent::Configured { .. } => {
            event(born)?.key(format!("sandbox/configured-at-creation:{place}"))
        }
        _ => event(born)?,
    })
}

fn read(json: serde_json::Value) -> Result<SandboxRecord, JournalError> {
    serde_json::from_value(json)
        .map_err(|error| JournalError(format!("a sandbox record cannot be read: {error}")))
}

fn document(record: &SandboxRecord) -> Result<serde_json::Value, JournalError> {
    serde_json::to_value(record).map_err(|error| JournalError(error.to_string()))
}

fn last_offset(outcome: &Outcome) -> u64 {
    outcome
        .appends
        .last()
        .and_then(|events| events.last())
        .map_or(0, |last| last.event.offset)
}

impl Journal for StreamJournal {
    fn birth(
        &self,
        claim: CreateRequested,
        events: Vec<SandboxEvent>,
        record: SandboxRecord,
    ) -> BoxFuture<'_, Result<BirthOutcome, JournalError>> {
        async move {
            let key = record.key.clone();
            let requested = event(&SandboxEvent::CreateRequested(claim))?.key(claim_key(&key.path));
            let births: Result<Vec<_>, _> =
                events.iter().map(|born| birth_event(&key, born)).collect();
            let transaction = Transaction::new()
                .append(Append::one(
                    &key.project,
                    &StreamPath::sandboxes(),
                    requested,
                ))
                .append(Append::new(&key.project, &key.path.stream(), births?))
                .write(
                    record_id(&key),
                    RECORD_VERSION,
                    document(&record)?,
                    Expect::Absent,
                );
            match self.store.commit(transaction).await {
                Ok(outcome) => Ok(BirthOutcome::Born(last_offset(&outcome))),
                Err(StoreError::RecordConflict { .. } | StoreError::IdempotencyConflict { .. }) => {
                    Ok(BirthOutcome::Taken)
                }
                Err(error) => Err(failed(error)),
            }
        }
        .boxed()
    }

    fn claim(
        &self,
        project: ProjectId,
        path: SandboxPath,
    ) -> BoxFuture<'_, Result<Option<CreateRequested>, JournalError>> {
        async move {
            let catalogue = StreamKey::new(&project, &StreamPath::sandboxes());
            let found = self
                .store
                .get_event(&catalogue, EventRef::Key(claim_key(&path)))
                .await;
            let Some(found) = found.map_err(failed)? else {
                return Ok(None);
            };
            match SandboxEvent::from_parts(&found.event_type, &found.payload) {
                Some(SandboxEvent::CreateRequested(claim)) => Ok(Some(claim)),
                _ => Err(JournalError(format!("the claim on {path} cannot be read"))),
            }
        }
        .boxed()
    }

    fn commit(
        &self,
        record: SandboxRecord,
        events: Vec<SandboxEvent>,
    ) -> BoxFuture<'_, Result<u64, JournalError>> {
        async move {
            let key = &record.key;
            let events: Result<Vec<_>, _> = events.iter().map(event).collect();
            let transaction = Transaction::new()
                .append(Append::new(&key.project, &key.path.stream(), events?))
                .write(
                    record_id(key),
                    RECORD_VERSION,
                    document(&record)?,
                    Expect::Any,
                );
            let outcome = self.store.commit(transaction).await.map_err(failed)?;
            Ok(last_offset(&outcome).max(record.offset))
        }
        .boxed()
    }

    fn note(
        &self,
        key: SandboxKey,
        noted: SandboxEvent,
    ) -> BoxFuture<'_, Result<u64, JournalError>> {
        async move {
            let append = Append::one(&key.project, &key.path.stream(), event(&noted)?);
            let outcome = self
                .store
                .commit(Transaction::new().append(append))
                .await
                .map_err(failed)?;
            Ok(last_offset(&outcome))
        }
        .boxed()
    }

    fn record(
        &self,
        key: SandboxKey,
    ) -> BoxFuture<'_, Result<Option<SandboxRecord>, JournalError>> {
        async move {
            match self.store.record(&record_id(&key)).await.map_err(failed)? {
                Some(record) => Ok(Some(self.refreshed(read(record.json)?).await?)),
                None => Ok(None),
            }
        }
        .boxed()
    }

    fn records(
        &self,
        project: Option<ProjectId>,
    ) -> BoxFuture<'_, Result<Vec<SandboxRecord>, JournalError>> {
        async move {
            let scope = project.as_ref().map_or(Scope::All, Scope::Project);
            let records = self.store.records(KIND, scope).await.map_err(failed)?;
            let mut read_records = Vec::with_capacity(records.len());
            for record in records {
                read_records.push(read(record.json)?);
            }
            Ok(read_records)
        }
        .boxed()
    }
}
