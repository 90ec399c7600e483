//! Mutexes whose holder cannot leave half a change behind.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. Every critical section of this crate leaves its data whole at each
/// step, so a panic of another holder does not matter.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
