//! Records out of the database.

use hutch_protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::StoreError;
use crate::integer;
use crate::record::{Record, RecordId};

const COLUMNS: &str = "kind, project, key, revision, version, json, updated_at";

struct StoredRecord {
    kind: String,
    project: String,
    key: String,
    revision: u64,
    version: u32,
    json: String,
    updated_at: i64,
}

impl StoredRecord {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            kind: row.get(0)?,
            project: row.get(1)?,
            key: row.get(2)?,
            revision: integer::from_row(row, 3)?,
            version: row.get(4)?,
            json: row.get(5)?,
            updated_at: row.get(6)?,
        })
    }

    fn parse(self) -> Result<Record, StoreError> {
        let name = format!("record {} {:?}", self.kind, self.key);
        let project = match self.project.as_str() {
            "" => None,
            text => Some(
                text.parse()
                    .map_err(|error| StoreError::Damaged(format!("{name}: {error}")))?,
            ),
        };
        Ok(Record {
            json: serde_json::from_str(&self.json)
                .map_err(|error| StoreError::Damaged(format!("{name}: {error}")))?,
            id: RecordId {
                kind: self.kind,
                project,
                key: self.key,
            },
            revision: self.revision,
            version: self.version,
            updated_at: Timestamp::from_millis(self.updated_at),
        })
    }
}

pub(crate) fn one(connection: &Connection, id: &RecordId) -> Result<Option<Record>, StoreError> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM records WHERE kind = ?1 AND project = ?2 AND key = ?3"
        ))?
        .query_row(
            params![id.kind, id.project_text(), id.key],
            StoredRecord::read,
        )
        .optional()?
        .map(StoredRecord::parse)
        .transpose()
}

/// `project` none means all; `after` is the last record of the page before.
pub(crate) fn page(
    connection: &Connection,
    kind: &str,
    project: Option<&str>,
    after: Option<&RecordId>,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (after_project, after_key) = after.map_or(("", ""), |id| (id.project_text(), &id.key));
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM records
         WHERE kind = ?1 AND (?2 IS NULL OR project = ?2) AND (project, key) > (?3, ?4)
         ORDER BY project, key LIMIT ?5"
    ))?;
    let rows = statement.query_map(
        params![kind, project, after_project, after_key, limit],
        StoredRecord::read,
    )?;
    let mut records = Vec::new();
    for row in rows {
        records.push(row?.parse()?);
    }
    Ok(records)
}
