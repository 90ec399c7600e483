//! Offsets and revisions as SQLite has them: signed.

use rusqlite::Row;

/// The column value of a number; what SQLite cannot hold, no row has.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number in a column.
pub(crate) fn from_row(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}
