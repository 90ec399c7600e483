//! Appending events.

use hutch_protocol::{StreamPath, Timestamp};
use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use crate::error::StoreError;
use crate::event::{Committed, Event, NewEvent, StreamKey};
use crate::integer;
use crate::query::events;
use crate::query::streams::{self, StreamRow};
use crate::transaction::Append;

/// The type of the store's own event: a stream below this one exists now.
const CHILD_CREATED: &str = "stream/child-stream-created";

/// Appends events to one stream, making the stream when needed.
pub(super) fn append(
    connection: &Connection,
    append: Append,
    now: Timestamp,
    heads: &mut Vec<(StreamKey, u64)>,
) -> Result<Vec<Committed>, StoreError> {
    let Append { stream, events } = append;
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let mut log = Log::open(connection, &stream, now, heads)?;
    let mut committed = Vec::with_capacity(events.len());
    for event in events {
        committed.push(log.take(event)?);
    }
    log.finish(heads)?;
    Ok(committed)
}

/// One stream while events are appended to it.
struct Log<'a> {
    connection: &'a Connection,
    stream: &'a StreamKey,
    row: StreamRow,
    /// The time of all events of this append: the host's clock, but never
    /// before the stream's newest event.
    at: Timestamp,
    changed: bool,
}

impl<'a> Log<'a> {
    /// The stream; a new one is announced to its ancestors.
    fn open(
        connection: &'a Connection,
        stream: &'a StreamKey,
        now: Timestamp,
        heads: &mut Vec<(StreamKey, u64)>,
    ) -> Result<Self, StoreError> {
        if let Some(row) = streams::row(connection, stream)? {
            return Ok(Self::new(connection, stream, row, now));
        }
        let ancestors = stream.path.ancestors();
        // From the top, so that each ancestor is announced before what is below it.
        for (depth, path) in ancestors.iter().enumerate() {
            let ancestor = sibling(stream, path);
            if streams::row(connection, &ancestor)?.is_none() {
                insert_stream(connection, &ancestor, now)?;
                announce(connection, &ancestor, &ancestors[..depth], now, heads)?;
            }
        }
        let row = insert_stream(connection, stream, now)?;
        announce(connection, stream, &ancestors, now, heads)?;
        Ok(Self::new(connection, stream, row, now))
    }

    fn new(
        connection: &'a Connection,
        stream: &'a StreamKey,
        row: StreamRow,
        now: Timestamp,
    ) -> Self {
        Self {
            connection,
            stream,
            row,
            at: Timestamp::from_millis(now.millis().max(row.updated_at)),
            changed: false,
        }
    }

    /// Appends one event, or finds the one that has its key.
    fn take(&mut self, new: NewEvent) -> Result<Committed, StoreError> {
        if let Some(key) = &new.idempotency_key
            && let Some(stored) = events::by_key(self.connection, self.row.id, key)?
        {
            let existing = stored.parse(&self.stream.path)?;
            return self.earlier(existing, &new);
        }
        let offset = self.row.max_offset + 1;
        if let Some(expected) = new.expected_offset
            && expected != offset
        {
            return Err(StoreError::OffsetConflict {
                stream: self.stream.clone(),
                expected,
                found: offset,
            });
        }
        let event = Event {
            offset,
            event_type: new.event_type,
            payload: new.payload,
            metadata: new.metadata,
            idempotency_key: new.idempotency_key,
            created_at: self.at,
            path: self.stream.path.clone(),
        };
        self.insert(&event)?;
        Ok(Committed {
            event,
            inserted: true,
        })
    }

    /// The answer to an event whose key is taken.
    fn earlier(&self, existing: Event, new: &NewEvent) -> Result<Committed, StoreError> {
        let same = existing.event_type == new.event_type
            && same_json(Some(&existing.payload), Some(&new.payload))
            && same_json(existing.metadata.as_ref(), new.metadata.as_ref());
        let (stream, existing) = (self.stream.clone(), Box::new(existing));
        if !same {
            return Err(StoreError::IdempotencyConflict {
                stream,
                key: existing.idempotency_key.clone().unwrap_or_default(),
                existing,
            });
        }
        match new.expected_offset {
            Some(expected) if expected != existing.offset => Err(StoreError::IdempotencyOffset {
                stream,
                expected,
                existing,
            }),
            _ => Ok(Committed {
                event: *existing,
                inserted: false,
            }),
        }
    }

    fn insert(&mut self, event: &Event) -> Result<(), StoreError> {
        let json = |object: &Map<String, Value>| {
            serde_json::to_string(object).map_err(|error| StoreError::Invalid(error.to_string()))
        };
        self.connection
            .prepare_cached(
                r#"INSERT INTO events
                   (stream, "offset", type, payload, metadata, idempotency_key, created_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"#,
            )?
            .execute(params![
                self.row.id,
                integer::to_sql(event.offset),
                event.event_type,
                json(&event.payload)?,
                event.metadata.as_ref().map(json).transpose()?,
                event.idempotency_key,
                event.created_at.millis()
            ])?;
        self.row.max_offset = event.offset;
        self.changed = true;
        Ok(())
    }

    /// Stores how far the stream has come, and has subscribers told.
    fn finish(self, heads: &mut Vec<(StreamKey, u64)>) -> Result<(), StoreError> {
        if !self.changed {
            return Ok(());
        }
        self.connection
            .prepare_cached("UPDATE streams SET max_offset = ?2, updated_at = ?3 WHERE id = ?1")?
            .execute(params![
                self.row.id,
                integer::to_sql(self.row.max_offset),
                self.at.millis()
            ])?;
        heads.push((self.stream.clone(), self.row.max_offset));
        Ok(())
    }
}

/// Whether two objects hold the same values, in whatever order. The texts are
/// compared too, since a number may change its last digit when it is read back.
fn same_json(a: Option<&Map<String, Value>>, b: Option<&Map<String, Value>>) -> bool {
    a == b || serde_json::to_string(&a).ok() == serde_json::to_string(&b).ok()
}

fn sibling(stream: &StreamKey, path: &StreamPath) -> StreamKey {
    StreamKey {
        project: stream.project.clone(),
        path: path.clone(),
    }
}

fn insert_stream(
    connection: &Connection,
    stream: &StreamKey,
    now: Timestamp,
) -> Result<StreamRow, StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO streams (project, path, created_at, updated_at, max_offset)
             VALUES (?1, ?2, ?3, ?3, 0)",
        )?
        .execute(params![
            stream.project_text(),
            stream.path.as_str(),
            now.millis()
        ])?;
    Ok(StreamRow {
        id: connection.last_insert_rowid(),
        created_at: now.millis(),
        updated_at: now.millis(),
        max_offset: 0,
    })
}

/// Tells every ancestor, all of which exist, that a stream exists now.
fn announce(
    connection: &Connection,
    child: &StreamKey,
    ancestors: &[StreamPath],
    now: Timestamp,
    heads: &mut Vec<(StreamKey, u64)>,
) -> Result<(), StoreError> {
    for path in ancestors {
        let ancestor = sibling(child, path);
        let row = streams::row(connection, &ancestor)?
            .ok_or_else(|| StoreError::Damaged(format!("stream {path} vanished")))?;
        let mut payload = Map::new();
        payload.insert("childPath".into(), child.path.as_str().into());
        let event = NewEvent::new(CHILD_CREATED, payload)
            .key(format!("child-stream-created:{path}:{}", child.path));
        let mut log = Log::new(connection, &ancestor, row, now);
        log.take(event)?;
        log.finish(heads)?;
    }
    Ok(())
}
