//! Streams out of the database.

use hutch_protocol::{ProjectId, StreamPath, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::{StreamHead, StreamInfo, StreamListing};
use crate::error::StoreError;
use crate::event::StreamKey;
use crate::integer;

/// A stream's row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamRow {
    pub(crate) id: i64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) max_offset: u64,
}

/// A stream's row; none when it does not exist.
pub(crate) fn row(
    connection: &Connection,
    stream: &StreamKey,
) -> rusqlite::Result<Option<StreamRow>> {
    connection
        .prepare_cached(
            "SELECT id, created_at, updated_at, max_offset FROM streams
             WHERE project = ?1 AND path = ?2",
        )?
        .query_row(
            params![stream.project_text(), stream.path.as_str()],
            |row| {
                Ok(StreamRow {
                    id: row.get(0)?,
                    created_at: row.get(1)?,
                    updated_at: row.get(2)?,
                    max_offset: integer::from_row(row, 3)?,
                })
            },
        )
        .optional()
}

pub(crate) fn head(
    connection: &Connection,
    stream: &StreamKey,
) -> Result<Option<StreamHead>, StoreError> {
    Ok(row(connection, stream)?.map(|row| StreamHead {
        created_at: Timestamp::from_millis(row.created_at),
        max_offset: row.max_offset,
    }))
}

pub(crate) fn list(
    connection: &Connection,
    project: Option<&ProjectId>,
    listing: &StreamListing,
) -> Result<Vec<StreamInfo>, StoreError> {
    let project = project.map_or("", ProjectId::as_str);
    // The greatest character ends the range of all paths with the prefix.
    let end = format!("{}{}", listing.prefix, char::MAX);
    let after = listing.after.as_ref().map_or("", StreamPath::as_str);
    let limit = i64::try_from(listing.limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(
        "SELECT path, created_at, max_offset FROM streams
         WHERE project = ?1 AND path >= ?2 AND path < ?3 AND path > ?4
         ORDER BY path LIMIT ?5",
    )?;
    let rows = statement.query_map(params![project, listing.prefix, end, after, limit], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get(1)?,
            integer::from_row(row, 2)?,
        ))
    })?;
    let mut streams = Vec::new();
    for row in rows {
        let (path, created_at, max_offset) = row?;
        streams.push(StreamInfo {
            path: path
                .parse()
                .map_err(|error| StoreError::Damaged(format!("stream {path:?}: {error}")))?,
            created_at: Timestamp::from_millis(created_at),
            max_offset,
        });
    }
    Ok(streams)
}
