//! The connections that read.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use crate::error::{OpenError, StoreError};
use crate::schema::BUSY_TIMEOUT;

/// A few read-only connections, each used by one read at a time on a blocking
/// thread. A read sees every commit that was answered before it began.
#[derive(Debug)]
pub(crate) struct Readers {
    idle: Mutex<Vec<Connection>>,
    free: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn open(path: &Path, count: usize) -> Result<Self, OpenError> {
        let count = count.max(1);
        let connect = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.set_prepared_statement_cache_capacity(32);
            Ok(connection)
        };
        let idle = (0..count)
            .map(|_| connect())
            .collect::<rusqlite::Result<Vec<_>>>()
            .map_err(|source| OpenError::Database {
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            idle: Mutex::new(idle),
            free: Arc::new(Semaphore::new(count)),
        })
    }

    /// Runs a read in one snapshot of the database. Waits for a free
    /// connection. Dropping the future lets the read finish on its thread.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.free)
            .acquire_owned()
            .await
            .map_err(|_| StoreError::Closed)?;
        let readers = Arc::clone(self);
        let task = tokio::task::spawn_blocking(move || {
            let mut lease = Lease::take(&readers)?;
            let result = lease.in_snapshot(read);
            drop(lease);
            drop(permit);
            result
        });
        task.await.map_err(|_| StoreError::Closed)?
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that goes back whatever happens.
struct Lease<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl<'a> Lease<'a> {
    fn take(readers: &'a Readers) -> Result<Self, StoreError> {
        let connection = readers.idle().pop();
        // There are as many permits as connections, so one is always idle.
        if connection.is_none() {
            return Err(StoreError::Closed);
        }
        Ok(Self {
            readers,
            connection,
        })
    }

    fn in_snapshot<T>(
        &mut self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let connection = self.connection.as_mut().ok_or(StoreError::Closed)?;
        let transaction = connection.transaction()?;
        let result = read(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.readers.idle().push(connection);
        }
    }
}
