//! What the sessions of one key may use together.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use capnweb::Budget;

use crate::keys::KeyName;

/// Calls of one key that may wait or run.
const CALLS_MAX: usize = 32_768;
/// Bytes that one key may make the server hold: arguments, results that it has
/// not released and streams that nobody has read.
const BYTES_MAX: usize = 512 * 1024 * 1024;

/// One budget for each key that was used. There are no more than keys.
#[derive(Debug, Default)]
pub(super) struct Budgets(Mutex<HashMap<KeyName, Budget>>);

impl Budgets {
    pub(super) fn of(&self, key: &KeyName) -> Budget {
        let mut budgets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let budget = budgets
            .entry(key.clone())
            .or_insert_with(|| Budget::new(CALLS_MAX, BYTES_MAX));
        budget.clone()
    }
}
