//! Random transactions against a model that a person can check by reading.

use std::collections::BTreeMap;

use hutch_protocol::{ProjectId, StreamPath};
use hutch_streams::{
    Append, EventQuery, Expect, NewEvent, Outcome, RecordId, Store, StoreError, StreamKey,
    StreamListing, Transaction,
};
use proptest::prelude::*;
use serde_json::json;

use crate::fixture::object;

const PATHS: [&str; 5] = ["/", "/a", "/a/b", "/a/b/c", "/d"];

#[derive(Clone, Debug)]
struct Offer {
    body: u8,
    key: Option<u8>,
    expected: Option<u64>,
}

#[derive(Clone, Debug)]
struct Step {
    appends: Vec<(usize, Vec<Offer>)>,
    record: Option<(u8, ExpectStep)>,
    delete: bool,
}

#[derive(Clone, Debug)]
enum ExpectStep {
    Absent,
    Any,
    Current,
    Stale,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let offer = (
        0..3_u8,
        proptest::option::of(0..4_u8),
        proptest::option::weighted(0.2, 1..9_u64),
    )
        .prop_map(|(body, key, expected)| Offer {
            body,
            key,
            expected,
        });
    let append = (0..PATHS.len(), proptest::collection::vec(offer, 0..4));
    let expect = prop_oneof![
        1 => Just(ExpectStep::Absent),
        3 => Just(ExpectStep::Any),
        2 => Just(ExpectStep::Current),
        1 => Just(ExpectStep::Stale)
    ];
    let step = (
        proptest::collection::vec(append, 0..3),
        proptest::option::of((0..3_u8, expect)),
        proptest::bool::weighted(0.1),
    )
        .prop_map(|(appends, record, delete)| Step {
            appends,
            record,
            delete,
        });
    proptest::collection::vec(step, 1..30)
}

/// (body, key) of each event. An announcement has its child as body.
type Log = Vec<(String, Option<String>)>;

#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    streams: BTreeMap<String, Log>,
    record: Option<(u64, u8)>,
    revision: u64,
}

impl Model {
    /// The offset and newness of each event, or the text of the refusal.
    fn apply(&mut self, step: &Step) -> Result<Vec<(u64, bool)>, String> {
        let mut next = self.clone();
        let mut made = Vec::new();
        for (path, offers) in &step.appends {
            for offer in offers {
                made.push(next.append(PATHS[*path], offer)?);
            }
        }
        let current = next.record.map(|(revision, _)| revision);
        if let Some((body, expect)) = &step.record {
            let fine = match expect {
                ExpectStep::Any => true,
                ExpectStep::Absent => current.is_none(),
                ExpectStep::Current => current.is_some(),
                ExpectStep::Stale => false,
            };
            if !fine {
                return Err("record".into());
            }
            next.revision += 1;
            next.record = Some((next.revision, *body));
        }
        if step.delete {
            next.record = None;
        }
        *self = next;
        Ok(made)
    }

    fn append(&mut self, path: &str, offer: &Offer) -> Result<(u64, bool), String> {
        let body = offer.body.to_string();
        let key = offer.key.map(|key| key.to_string());
        if let Some(log) = self.streams.get(path)
            && let Some(at) = log.iter().position(|(_, k)| key.is_some() && *k == key)
        {
            let offset = at as u64 + 1;
            if log[at].0 != body {
                let key = key.unwrap();
                return Err(format!(
                    "idempotency key \"{key}\" already names a different event at offset {offset}"
                ));
            }
            return match offer.expected {
                Some(expected) if expected != offset => Err(format!(
                    "idempotency hit at offset {offset}, got {expected}"
                )),
                _ => Ok((offset, false)),
            };
        }
        self.birth(path);
        let log = self.streams.get_mut(path).unwrap();
        let offset = log.len() as u64 + 1;
        if let Some(expected) = offer.expected
            && expected != offset
        {
            return Err(format!("expected next offset {expected}, found {offset}"));
        }
        log.push((body, key));
        Ok((offset, true))
    }

    fn birth(&mut self, path: &str) {
        let path: StreamPath = path.parse().unwrap();
        let mut line = path.ancestors();
        line.push(path);
        for child in line {
            if self.streams.contains_key(child.as_str()) {
                continue;
            }
            self.streams.insert(child.to_string(), Vec::new());
            for ancestor in child.ancestors() {
                let key = format!("child-stream-created:{ancestor}:{child}");
                let log = self.streams.get_mut(ancestor.as_str()).unwrap();
                log.push((child.to_string(), Some(key)));
            }
        }
    }
}

struct Subject {
    store: Store,
    project: ProjectId,
}

impl Subject {
    fn id(&self) -> RecordId {
        RecordId::new("thing", &self.project, "one")
    }

    fn transaction(&self, step: &Step, current: Option<u64>) -> Transaction {
        let mut transaction = Transaction::new();
        for (path, offers) in &step.appends {
            let events = offers.iter().map(|offer| {
                let payload = object(json!({"body": offer.body.to_string()}));
                let mut event = NewEvent::new("model/event", payload);
                event.idempotency_key = offer.key.map(|key| key.to_string());
                event.expected_offset = offer.expected;
                event
            });
            let path = PATHS[*path].parse().unwrap();
            let append = Append::new(&self.project, &path, events.collect());
            transaction = transaction.append(append);
        }
        if let Some((body, expect)) = &step.record {
            let expect = match expect {
                ExpectStep::Absent => Expect::Absent,
                ExpectStep::Any => Expect::Any,
                ExpectStep::Current => Expect::Revision(current.unwrap_or(u64::MAX)),
                ExpectStep::Stale => Expect::Revision(0),
            };
            transaction = transaction.write(self.id(), 1, json!(body), expect);
        }
        if step.delete {
            transaction = transaction.delete(self.id(), Expect::Any);
        }
        transaction
    }

    /// All that the store holds, as the model would say it.
    async fn state(&self, revision: u64) -> Model {
        let listing = StreamListing::new("");
        let streams = self
            .store
            .list_streams(Some(&self.project), listing)
            .await
            .unwrap();
        let mut model = Model {
            revision,
            ..Model::default()
        };
        for stream in streams {
            let key = StreamKey::new(&self.project, &stream.path);
            let events = self
                .store
                .get_events(&key, EventQuery::default())
                .await
                .unwrap();
            assert_eq!(events.last().unwrap().offset, stream.max_offset);
            assert!(
                events
                    .windows(2)
                    .all(|pair| pair[0].created_at <= pair[1].created_at)
            );
            let offsets: Vec<u64> = events.iter().map(|event| event.offset).collect();
            assert_eq!(offsets, (1..=stream.max_offset).collect::<Vec<_>>());
            let log = events.into_iter().map(|event| {
                let body = event.payload.get("body").or(event.payload.get("childPath"));
                (
                    body.unwrap().as_str().unwrap().to_owned(),
                    event.idempotency_key,
                )
            });
            model.streams.insert(stream.path.to_string(), log.collect());
        }
        let record = self.store.record(&self.id()).await.unwrap();
        model.record =
            record.map(|r| (r.revision, u8::try_from(r.json.as_u64().unwrap()).unwrap()));
        model
    }
}

fn answer(result: Result<Outcome, StoreError>) -> Result<Vec<(u64, bool)>, String> {
    match result {
        Ok(outcome) => Ok(outcome
            .events()
            .map(|c| (c.event.offset, c.inserted))
            .collect()),
        Err(StoreError::RecordConflict { .. }) => Err("record".into()),
        Err(error) => Err(error.to_string()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_behaves_as_the_model(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let directory = tempfile::TempDir::new().unwrap();
            let mut subject = Subject {
                store: Store::open(directory.path()).unwrap(),
                project: ProjectId::random(),
            };
            let mut model = Model::default();
            for step in &steps {
                let current = model.record.map(|(revision, _)| revision);
                let transaction = subject.transaction(step, current);
                let expected = model.apply(step);
                assert_eq!(answer(subject.store.commit(transaction).await), expected, "{step:?}");
            }
            assert_eq!(subject.state(model.revision).await, model);
            subject.store.close().await;
            subject.store = Store::open(directory.path()).unwrap();
            assert_eq!(subject.state(model.revision).await, model);
        });
    }
}
