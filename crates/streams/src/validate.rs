//! Checks of what callers offer, before anything waits for the writer.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::StoreError;
use crate::event::{NewEvent, StreamKey};
use crate::limits;
use crate::record::RecordId;
use crate::transaction::{RecordWrite, Transaction};

/// Types under this prefix are appended by the store alone.
const OWN_TYPES: &str = "stream/";
/// Keys under this prefix name the store's own events.
const OWN_KEYS: &str = "child-stream-created:";

/// Checks a whole transaction and says how many bytes of JSON it holds.
pub(crate) fn transaction(transaction: &Transaction) -> Result<usize, StoreError> {
    let operations =
        transaction.appends.len() + transaction.writes.len() + transaction.deletes.len();
    at_most(
        "a transaction",
        "operations",
        operations,
        limits::OPERATIONS_PER_TRANSACTION,
    )?;
    let mut bytes = 0;
    for append in &transaction.appends {
        stream(&append.stream)?;
        at_most(
            "an append",
            "events",
            append.events.len(),
            limits::EVENTS_PER_APPEND,
        )?;
        for new in &append.events {
            bytes += event(new)?;
        }
    }
    for write in &transaction.writes {
        bytes += record_write(write)?;
    }
    for delete in &transaction.deletes {
        record_id(&delete.id)?;
    }
    at_most("a transaction", "bytes", bytes, limits::TRANSACTION_BYTES)?;
    Ok(bytes)
}

fn stream(stream: &StreamKey) -> Result<(), StoreError> {
    let path = stream.path.as_str();
    let segments = path.bytes().filter(|byte| *byte == b'/').count();
    at_most(
        &format!("stream path {path}"),
        "segments",
        segments,
        limits::PATH_SEGMENTS,
    )
}

fn event(event: &NewEvent) -> Result<usize, StoreError> {
    event_type(&event.event_type)?;
    if event.event_type.starts_with(OWN_TYPES) {
        return Err(StoreError::Invalid(format!(
            "events of type {:?} are appended by the store alone",
            event.event_type
        )));
    }
    if let Some(key) = &event.idempotency_key {
        idempotency_key(key)?;
    }
    if event.expected_offset == Some(0) {
        return Err(StoreError::Invalid(
            "offsets start at 1, an event cannot expect 0".into(),
        ));
    }
    let what = |part: &str| format!("the {part} of a {:?} event", event.event_type);
    let mut bytes = json_object(&event.payload, limits::PAYLOAD_BYTES, || what("payload"))?;
    if let Some(metadata) = &event.metadata {
        bytes += json_object(metadata, limits::METADATA_BYTES, || what("metadata"))?;
    }
    Ok(bytes)
}

/// Whether a type may be stored, or named in a filter.
pub(crate) fn event_type(text: &str) -> Result<(), StoreError> {
    at_most(
        "an event type",
        "bytes",
        text.len(),
        limits::EVENT_TYPE_BYTES,
    )?;
    if text.is_empty() || text == "*" || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(StoreError::Invalid(format!(
            "invalid event type {text:?}: use printable ASCII without spaces, such as \"notes/added\""
        )));
    }
    Ok(())
}

fn idempotency_key(key: &str) -> Result<(), StoreError> {
    at_most(
        "an idempotency key",
        "bytes",
        key.len(),
        limits::IDEMPOTENCY_KEY_BYTES,
    )?;
    let refused = |why: &str| {
        Err(StoreError::Invalid(format!(
            "invalid idempotency key {key:?}: {why}"
        )))
    };
    if key.is_empty() || key.trim() != key {
        return refused("it is empty, or begins or ends with a space");
    }
    if key.chars().any(char::is_control) {
        return refused("it holds a control character");
    }
    if key.starts_with(OWN_KEYS) {
        return refused("keys that begin with \"child-stream-created:\" are the store's own");
    }
    Ok(())
}

fn record_write(write: &RecordWrite) -> Result<usize, StoreError> {
    record_id(&write.id)?;
    let what = || format!("record {} {:?}", write.id.kind, write.id.key);
    depth(&write.json, 1, &what)?;
    sized(&write.json, limits::RECORD_BYTES, what)
}

fn record_id(id: &RecordId) -> Result<(), StoreError> {
    for (part, text, limit) in [
        ("kind", &id.kind, limits::RECORD_KIND_BYTES),
        ("key", &id.key, limits::RECORD_KEY_BYTES),
    ] {
        at_most(&format!("a record's {part}"), "bytes", text.len(), limit)?;
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(StoreError::Invalid(format!(
                "invalid record {part} {text:?}: it is empty or holds a control character"
            )));
        }
    }
    Ok(())
}

fn json_object(
    object: &Map<String, Value>,
    limit: usize,
    what: impl Fn() -> String,
) -> Result<usize, StoreError> {
    for value in object.values() {
        depth(value, 2, &what)?;
    }
    sized(object, limit, what)
}

fn depth(value: &Value, level: usize, what: &dyn Fn() -> String) -> Result<(), StoreError> {
    if level > limits::JSON_DEPTH {
        return Err(StoreError::TooLarge {
            what: what(),
            unit: "levels of nesting",
            actual: level,
            limit: limits::JSON_DEPTH,
        });
    }
    match value {
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| depth(item, level + 1, what)),
        Value::Object(fields) => fields
            .values()
            .try_for_each(|item| depth(item, level + 1, what)),
        _ => Ok(()),
    }
}

/// The length of a value as JSON, without keeping the text.
fn sized(
    value: &impl Serialize,
    limit: usize,
    what: impl Fn() -> String,
) -> Result<usize, StoreError> {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value)
        .map_err(|error| StoreError::Invalid(format!("{}: {error}", what())))?;
    at_most(&what(), "bytes", count.0, limit)?;
    Ok(count.0)
}

pub(crate) fn at_most(
    what: &str,
    unit: &'static str,
    actual: usize,
    limit: usize,
) -> Result<(), StoreError> {
    if actual <= limit {
        return Ok(());
    }
    Err(StoreError::TooLarge {
        what: what.to_owned(),
        unit,
        actual,
        limit,
    })
}
