//! The database file: how it is opened, and how it comes to the current schema.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::OpenError;

/// Marks the file as hutch's: "hutc" in ASCII.
const APPLICATION_ID: i64 = 0x6875_7463;

/// Each entry brings the schema from its index to the next version. Entries are
/// never changed once released; a change of schema is a new entry.
const MIGRATIONS: &[&str] = &[include_str!("schema/001.sql")];

/// How long a statement waits for a lock. Only a reader that arrives while the
/// log is recovered or reset ever meets one.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens the database for writing and brings it to the current schema.
pub(crate) fn open(path: &Path) -> Result<Connection, OpenError> {
    create_private(path)?;
    let failed = |source| OpenError::Database {
        path: path.to_owned(),
        source,
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    // Look before touching: setting the journal mode writes to the file.
    check(&connection, path, MIGRATIONS)?;
    set_up(&connection).map_err(failed)?;
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(failed)?;
    if mode != "wal" {
        return Err(OpenError::NoWriteAheadLog {
            path: path.to_owned(),
            mode,
        });
    }
    migrate(&mut connection, MIGRATIONS).map_err(failed)?;
    Ok(connection)
}

/// Makes the file readable by its owner alone; SQLite gives the log beside it
/// the same mode.
fn create_private(path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Io {
        path: path.to_owned(),
        source,
    };
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => {
            // The name must survive a power cut as surely as the first commit.
            let directory = path.parent().unwrap_or(Path::new("."));
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(failed)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Refuses files of other programs and of newer versions, unchanged.
fn check(connection: &Connection, path: &Path, migrations: &[&str]) -> Result<(), OpenError> {
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => OpenError::NotOurs {
            path: path.to_owned(),
        },
        _ => OpenError::Database {
            path: path.to_owned(),
            source,
        },
    };
    let application = pragma(connection, "application_id").map_err(failed)?;
    let version = pragma(connection, "user_version").map_err(failed)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    let fresh = application == 0 && version == 0 && tables == 0;
    if application != APPLICATION_ID && !fresh {
        return Err(OpenError::NotOurs {
            path: path.to_owned(),
        });
    }
    let supported = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    if version > supported {
        return Err(OpenError::NewerVersion {
            path: path.to_owned(),
            found: version,
            supported,
        });
    }
    Ok(())
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Keeps the log from staying at its largest size for ever.
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Applies the missing migrations, each whole or not at all.
fn migrate(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    let done = pragma(connection, "user_version")?;
    for (version, migration) in (1_i64..).zip(migrations) {
        if version <= done {
            continue;
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FIRST: &str = "CREATE TABLE a (x)";
    const SECOND: &str = "ALTER TABLE a ADD COLUMN y; INSERT INTO a VALUES (1, 2)";

    fn version(connection: &Connection) -> i64 {
        pragma(connection, "user_version").unwrap()
    }

    #[test]
    fn missing_migrations_run_once_each() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &[FIRST]).unwrap();
        assert_eq!(version(&connection), 1);
        for _ in 0..2 {
            migrate(&mut connection, &[FIRST, SECOND]).unwrap();
            assert_eq!(version(&connection), 2);
        }
        let rows: i64 = connection
            .query_row("SELECT count(*) FROM a", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 1);
        assert_eq!(
            pragma(&connection, "application_id").unwrap(),
            APPLICATION_ID
        );
    }

    #[test]
    fn a_failed_migration_leaves_the_version_before_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        let broken = "ALTER TABLE a ADD COLUMN y; INSERT INTO nowhere VALUES (1)";
        migrate(&mut connection, &[FIRST, broken]).unwrap_err();
        assert_eq!(version(&connection), 1);
        migrate(&mut connection, &[FIRST, SECOND]).unwrap();
        assert_eq!(version(&connection), 2);
    }

    #[test]
    fn every_connection_that_writes_is_durable() {
        let directory = tempfile::tempdir().unwrap();
        let connection = open(&directory.path().join("a.db")).unwrap();
        const FULL: i64 = 2;
        assert_eq!(pragma(&connection, "synchronous").unwrap(), FULL);
        assert_eq!(pragma(&connection, "foreign_keys").unwrap(), 1);
    }
}
