//! One transaction's SQL.

use hutch_protocol::Timestamp;
use rusqlite::Connection;

use super::{append, records};
use crate::error::StoreError;
use crate::event::StreamKey;
use crate::transaction::{Outcome, Transaction};

/// What a transaction did, to be told once it is committed.
pub(super) struct Applied {
    pub(super) outcome: Outcome,
    /// How far each touched stream has come.
    pub(super) heads: Vec<(StreamKey, u64)>,
}

/// Runs a transaction within the open savepoint.
pub(super) fn apply(
    connection: &Connection,
    transaction: Transaction,
    now: Timestamp,
) -> Result<Applied, StoreError> {
    let mut applied = Applied {
        outcome: Outcome::default(),
        heads: Vec::new(),
    };
    for append in transaction.appends {
        let committed = append::append(connection, append, now, &mut applied.heads)?;
        applied.outcome.appends.push(committed);
    }
    for write in transaction.writes {
        applied
            .outcome
            .records
            .push(records::write(connection, write, now)?);
    }
    for delete in transaction.deletes {
        records::delete(connection, delete)?;
    }
    Ok(applied)
}
