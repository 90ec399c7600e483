//! A store in a directory of its own.

use hutch_protocol::{ProjectId, StreamPath};
use hutch_streams::{
    Append, Committed, NewEvent, Options, Store, StoreError, StreamKey, Transaction,
};
use serde_json::{Map, Value};
use tempfile::TempDir;

pub struct Fixture {
    pub store: Store,
    pub project: ProjectId,
    pub directory: TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        let directory = TempDir::new().unwrap();
        let store = Store::open_with(directory.path(), options).unwrap();
        Self {
            store,
            project: ProjectId::random(),
            directory,
        }
    }

    pub fn key(&self, path: &str) -> StreamKey {
        StreamKey::new(&self.project, &path.parse().unwrap())
    }

    pub async fn append(
        &self,
        path: &str,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Committed>, StoreError> {
        let path: StreamPath = path.parse().unwrap();
        let append = Append::new(&self.project, &path, events);
        let outcome = self.store.commit(Transaction::new().append(append)).await?;
        Ok(outcome.appends.into_iter().next().unwrap())
    }

    /// Types of a stream's events, oldest first.
    pub async fn types(&self, path: &str) -> Vec<String> {
        let events = self
            .store
            .get_events(&self.key(path), Default::default())
            .await
            .unwrap();
        events.into_iter().map(|event| event.event_type).collect()
    }
}

pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

pub fn event(event_type: &str) -> NewEvent {
    NewEvent::new(event_type, Map::new())
}
