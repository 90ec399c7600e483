//! Events out of the database.

use std::fmt::Write as _;

use hutch_protocol::{StreamPath, Timestamp};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::{EventPage, EventQuery, EventRef, EventTypes, Order};
use crate::error::StoreError;
use crate::event::{Event, StreamKey};
use crate::integer;
use crate::query::streams;

/// The columns that [`StoredEvent::read`] takes.
pub(crate) const COLUMNS: &str =
    r#""offset", type, payload, metadata, idempotency_key, created_at"#;

/// A row before its JSON is parsed.
pub(crate) struct StoredEvent {
    offset: u64,
    event_type: String,
    payload: String,
    metadata: Option<String>,
    idempotency_key: Option<String>,
    created_at: i64,
}

impl StoredEvent {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            offset: integer::from_row(row, 0)?,
            event_type: row.get(1)?,
            payload: row.get(2)?,
            metadata: row.get(3)?,
            idempotency_key: row.get(4)?,
            created_at: row.get(5)?,
        })
    }

    fn bytes(&self) -> usize {
        self.payload.len() + self.metadata.as_ref().map_or(0, String::len)
    }

    pub(crate) fn parse(self, path: &StreamPath) -> Result<Event, StoreError> {
        let offset = self.offset;
        let damaged =
            |error: serde_json::Error| StoreError::Damaged(format!("{path} at {offset}: {error}"));
        Ok(Event {
            offset,
            event_type: self.event_type,
            payload: serde_json::from_str(&self.payload).map_err(damaged)?,
            metadata: self
                .metadata
                .map(|text| serde_json::from_str(&text).map_err(damaged))
                .transpose()?,
            idempotency_key: self.idempotency_key,
            created_at: Timestamp::from_millis(self.created_at),
            path: path.clone(),
        })
    }
}

/// One event of a stream.
pub(crate) fn one(
    connection: &Connection,
    stream: &StreamKey,
    which: &EventRef,
) -> Result<Option<Event>, StoreError> {
    let Some(row) = streams::row(connection, stream)? else {
        return Ok(None);
    };
    let stored = match which {
        EventRef::Offset(offset) => connection
            .prepare_cached(&format!(
                r#"SELECT {COLUMNS} FROM events WHERE stream = ?1 AND "offset" = ?2"#
            ))?
            .query_row(params![row.id, integer::to_sql(*offset)], StoredEvent::read)
            .optional()?,
        EventRef::Key(key) => by_key(connection, row.id, key)?,
    };
    stored.map(|stored| stored.parse(&stream.path)).transpose()
}

/// The event of a stream that has a key.
pub(crate) fn by_key(
    connection: &Connection,
    stream: i64,
    key: &str,
) -> rusqlite::Result<Option<StoredEvent>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM events WHERE stream = ?1 AND idempotency_key = ?2"
        ))?
        .query_row(params![stream, key], StoredEvent::read)
        .optional()
}

/// The events that a query selects.
pub(crate) fn page(
    connection: &Connection,
    stream: &StreamKey,
    query: &EventQuery,
) -> Result<EventPage, StoreError> {
    let mut page = EventPage {
        events: Vec::new(),
        stream_max_offset: 0,
        more: false,
    };
    let Some(row) = streams::row(connection, stream)? else {
        return Ok(page);
    };
    page.stream_max_offset = row.max_offset;
    let (sql, values) = statement(row.id, query);
    if sql.is_empty() {
        return Ok(page);
    }
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let stored = StoredEvent::read(row)?;
        bytes += stored.bytes();
        page.events.push(stored.parse(&stream.path)?);
        if query.max_bytes.is_some_and(|limit| bytes >= limit) {
            page.more = true;
            return Ok(page);
        }
    }
    page.more = page.events.len() == query.limit;
    Ok(page)
}

/// The SQL of a page; empty when the filter selects nothing.
fn statement(stream: i64, query: &EventQuery) -> (String, Vec<Sql>) {
    let bound = |offset: u64| Sql::Integer(integer::to_sql(offset));
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut values = vec![
        Sql::Integer(stream),
        bound(query.after_offset),
        bound(query.before_offset.unwrap_or(u64::MAX)),
        Sql::Integer(limit),
    ];
    let order = match query.order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    let range = r#"stream = ?1 AND "offset" > ?2 AND "offset" < ?3"#;
    let tail = format!(r#"ORDER BY "offset" {order} LIMIT ?4"#);
    let EventTypes::Only(types) = &query.event_types else {
        return (
            format!("SELECT {COLUMNS} FROM events WHERE {range} {tail}"),
            values,
        );
    };
    // Each type contributes its first few offsets out of the index by type, so
    // the work depends on the limit and not on the length of the stream.
    let mut offsets = String::new();
    for (index, name) in types.iter().enumerate() {
        let union = if index == 0 { "" } else { " UNION ALL " };
        let place = values.len() + 1;
        values.push(Sql::Text(name.clone()));
        let _ = write!(
            offsets,
            r#"{union}SELECT * FROM (SELECT "offset" FROM events WHERE {range} AND type = ?{place} {tail})"#
        );
    }
    if offsets.is_empty() {
        return (String::new(), Vec::new());
    }
    let sql = format!(
        r#"SELECT {COLUMNS} FROM events WHERE stream = ?1 AND "offset" IN ({offsets}) {tail}"#
    );
    (sql, values)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Without this, a hostile filter on a long stream would hold a reader for
    /// as long as it takes to walk over all of it.
    #[test]
    fn filtered_reads_find_their_events_by_index() {
        let directory = tempfile::tempdir().unwrap();
        let connection = crate::schema::open(&directory.path().join("a.db")).unwrap();
        for order in [Order::Ascending, Order::Descending] {
            let query = EventQuery {
                event_types: EventTypes::Only(vec!["a".into(), "b".into()]),
                order,
                ..EventQuery::default()
            };
            let (sql, values) = statement(1, &query);
            let mut explain = connection
                .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
                .unwrap();
            let plan = explain
                .query_map(params_from_iter(values), |row| row.get::<_, String>(3))
                .unwrap();
            let plan = plan.map(Result::unwrap).collect::<Vec<_>>().join("\n");
            assert!(!plan.contains("SCAN events"), "{plan}");
            let inner =
                "COVERING INDEX events_by_type (stream=? AND type=? AND offset>? AND offset<?)";
            assert_eq!(plan.matches(inner).count(), 2, "{plan}");
            assert!(plan.contains("(stream=? AND offset=?)"), "{plan}");
        }
    }
}
