//! One piece of work at a time on each sandbox's disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hutch_sandboxes::SandboxKey;
use hutch_snapshots::Cancel;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Work that a slow disk holds up goes on after its caller stopped waiting for
/// it. Two restores into one volume would take it from each other.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<HashMap<SandboxKey, Weak<Turn<()>>>>>);

impl Turns {
    /// Waits until the sandbox's turn is free.
    pub(super) async fn take(&self, key: &SandboxKey) -> OwnedMutexGuard<()> {
        self.of(key).lock_owned().await
    }

    fn of(&self, key: &SandboxKey) -> Arc<Turn<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(key.clone(), Arc::downgrade(&turn));
        turn
    }
}

/// Ends work when nobody waits for it any more.
pub(super) struct Wanted(pub(super) Cancel);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
