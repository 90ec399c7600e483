//! Writing records.

use hutch_protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::StoreError;
use crate::integer;
use crate::record::{Record, RecordId};
use crate::transaction::{Expect, RecordDelete, RecordWrite};

/// Writes a record whole under a new revision.
pub(super) fn write(
    connection: &Connection,
    write: RecordWrite,
    now: Timestamp,
) -> Result<Record, StoreError> {
    check(connection, &write.id, write.expect)?;
    let revision: u64 = connection
        .prepare_cached("UPDATE revisions SET last = last + 1 WHERE id = 1 RETURNING last")?
        .query_row([], |row| integer::from_row(row, 0))?;
    let RecordWrite {
        id, version, json, ..
    } = write;
    connection
        .prepare_cached(
            "INSERT INTO records (kind, project, key, revision, version, json, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (kind, project, key) DO UPDATE SET
                revision = excluded.revision, version = excluded.version,
                json = excluded.json, updated_at = excluded.updated_at",
        )?
        .execute(params![
            id.kind,
            id.project_text(),
            id.key,
            integer::to_sql(revision),
            version,
            json.to_string(),
            now.millis()
        ])?;
    Ok(Record {
        id,
        revision,
        version,
        json,
        updated_at: now,
    })
}

/// Deletes a record if it is there.
pub(super) fn delete(connection: &Connection, delete: RecordDelete) -> Result<(), StoreError> {
    let id = &delete.id;
    check(connection, id, delete.expect)?;
    connection
        .prepare_cached("DELETE FROM records WHERE kind = ?1 AND project = ?2 AND key = ?3")?
        .execute(params![id.kind, id.project_text(), id.key])?;
    Ok(())
}

fn check(connection: &Connection, id: &RecordId, expect: Expect) -> Result<(), StoreError> {
    if expect == Expect::Any {
        return Ok(());
    }
    let found: Option<u64> = connection
        .prepare_cached(
            "SELECT revision FROM records WHERE kind = ?1 AND project = ?2 AND key = ?3",
        )?
        .query_row(params![id.kind, id.project_text(), id.key], |row| {
            integer::from_row(row, 0)
        })
        .optional()?;
    let holds = match expect {
        Expect::Any => true,
        Expect::Absent => found.is_none(),
        Expect::Revision(revision) => found == Some(revision),
    };
    if holds {
        return Ok(());
    }
    Err(StoreError::RecordConflict {
        id: id.clone(),
        found,
    })
}
