//! A save that dies at any step leaves the store as it was.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use super::Step;
use crate::SnapshotError;

thread_local! {
    static CRASH_AT: Cell<Option<Step>> = const { Cell::new(None) };
}

/// Fails if the test wants the save to die here.
pub(super) fn crash(step: Step) -> Result<(), SnapshotError> {
    match CRASH_AT.get() == Some(step) {
        true => Err(SnapshotError::Cancelled),
        false => Ok(()),
    }
}
