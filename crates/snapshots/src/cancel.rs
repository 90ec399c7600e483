//! How a caller with a deadline ends a call that blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::SnapshotError;

/// A switch shared between a blocking call and whoever may end it. The call
/// looks at it before each entry and each block of data, then fails with
/// [`SnapshotError::Cancelled`] and removes what it had written to the store.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A switch that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the calls that hold this switch, soon.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn check(&self) -> Result<(), SnapshotError> {
        if self.0.load(Ordering::Relaxed) {
            return Err(SnapshotError::Cancelled);
        }
        Ok(())
    }
}
