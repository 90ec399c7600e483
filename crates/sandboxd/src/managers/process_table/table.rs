//! All records, a bounded number of them.

use super::record::Record;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most records kept; the oldest finished one makes room for a new one.
const RECORDS_MAX: usize = 1024;
/// What all logs together may hold, in bytes.
const LOGS_MAX: usize = 32 * 1024 * 1024;
/// What one log may hold, in bytes.
const LOG_MAX: usize = 8 * 1024 * 1024;

/// Why a record cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A process with that id runs.
    #[error("a process with this id runs already")]
    InUse,
    /// Nothing can make room.
    #[error("{RECORDS_MAX} processes run already")]
    Full,
}

/// The records of background processes, oldest first.
#[derive(Debug, Default)]
pub struct ProcessTable(Mutex<VecDeque<Arc<Record>>>);

impl ProcessTable {
    fn records(&self) -> MutexGuard<'_, VecDeque<Arc<Record>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a process with this id could be added now.
    ///
    /// # Errors
    /// See [`TableError`].
    pub fn admits(&self, id: &str) -> Result<(), TableError> {
        let records = self.records();
        if records
            .iter()
            .any(|record| record.id == id && !record.state().over())
        {
            return Err(TableError::InUse);
        }
        if records.len() >= RECORDS_MAX && records.iter().all(|record| !record.state().over()) {
            return Err(TableError::Full);
        }
        Ok(())
    }

    /// Adds a record; one of the same id that has ended makes way.
    ///
    /// # Errors
    /// See [`TableError`].
    pub fn add(&self, record: Arc<Record>) -> Result<(), TableError> {
        self.admits(&record.id)?;
        let mut records = self.records();
        records.retain(|known| known.id != record.id || !known.state().over());
        if records.len() >= RECORDS_MAX {
            let oldest = records.iter().position(|known| known.state().over());
            records.remove(oldest.ok_or(TableError::Full)?);
        }
        records.push_back(record);
        let each = (LOGS_MAX / records.len().max(1)).min(LOG_MAX);
        for record in records.iter() {
            record.limit_log(each);
        }
        Ok(())
    }

    /// The record with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<Record>> {
        self.records()
            .iter()
            .rev()
            .find(|record| record.id == id)
            .cloned()
    }

    /// All records: those that run first, each group oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Record>> {
        let mut all: Vec<_> = self.records().iter().cloned().collect();
        all.sort_by_key(|record| record.state().over());
        all
    }

    /// Those that run.
    #[must_use]
    pub fn running(&self) -> Vec<Arc<Record>> {
        self.records()
            .iter()
            .filter(|record| !record.state().over())
            .cloned()
            .collect()
    }
}
