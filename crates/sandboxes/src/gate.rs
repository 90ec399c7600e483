//! Who is inside a running machine right now, and whether more may enter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ports::Machine;

/// One incarnation: the machine and the word that it has ended.
pub(crate) struct Incarnation {
    pub(crate) machine: Arc<dyn Machine>,
    ended: CancellationToken,
    reason: OnceLock<&'static str>,
    oom_kills_seen: AtomicU64,
}

impl Incarnation {
    pub(crate) fn new(machine: Arc<dyn Machine>) -> Arc<Self> {
        Arc::new(Self {
            machine,
            ended: CancellationToken::new(),
            reason: OnceLock::new(),
            oom_kills_seen: AtomicU64::new(0),
        })
    }

    /// Whether the memory limit has ended a process since the last question.
    pub(crate) fn new_oom_kills(&self, total: u64) -> bool {
        self.oom_kills_seen.fetch_max(total, Ordering::Relaxed) < total
    }

    /// Ends every call that is inside; the first reason is the one they hear.
    pub(crate) fn end(&self, reason: &'static str) {
        let _ = self.reason.set(reason);
        self.ended.cancel();
    }

    /// Resolves with the reason once this incarnation is over.
    pub(crate) async fn ended(&self) -> &'static str {
        self.ended.cancelled().await;
        self.reason.get().copied().unwrap_or("stopped")
    }
}

enum Phase {
    Closed,
    Open(Arc<Incarnation>),
    /// Falling asleep by the idle timer: calls wait for which way it goes.
    Dozing(Arc<Incarnation>),
}

struct State {
    phase: Phase,
    inside: usize,
    last_activity: Instant,
    /// Whether a call has come since it dozes.
    wanted: bool,
}

/// The door of one sandbox. Cheap to ask: a call on a running sandbox takes
/// this lock once and never waits for the actor.
pub(crate) struct Gate {
    state: Mutex<State>,
    settled: Notify,
    capacity: usize,
}

/// What the door says to one call.
pub(crate) enum Entry {
    Open(Arc<Incarnation>),
    Closed,
    Dozing,
    Full,
}

impl Gate {
    pub(crate) fn new(capacity: usize) -> Arc<Self> {
        let state = State {
            phase: Phase::Closed,
            inside: 0,
            last_activity: Instant::now(),
            wanted: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            settled: Notify::new(),
            capacity,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is plain data that every step leaves whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, incarnation: Arc<Incarnation>) {
        let mut state = self.lock();
        state.phase = Phase::Open(incarnation);
        state.last_activity = Instant::now();
    }

    /// Lets no further call in and ends those inside.
    pub(crate) fn close(&self, reason: &'static str) {
        let phase = std::mem::replace(&mut self.lock().phase, Phase::Closed);
        if let Phase::Open(incarnation) | Phase::Dozing(incarnation) = phase {
            incarnation.end(reason);
        }
        self.settled.notify_waiters();
    }

    /// Has calls wait at the door, if nobody is inside and nobody was for
    /// `quiet`.
    pub(crate) fn doze_if_quiet(&self, quiet: Duration) -> bool {
        let mut state = self.lock();
        if state.inside > 0 || state.last_activity.elapsed() < quiet {
            return false;
        }
        let Phase::Open(incarnation) = &state.phase else {
            return false;
        };
        state.phase = Phase::Dozing(Arc::clone(incarnation));
        state.wanted = false;
        true
    }

    /// Closes after a doze, unless a call has come meanwhile.
    pub(crate) fn close_if_unwanted(&self, reason: &'static str) -> bool {
        {
            let mut state = self.lock();
            let Phase::Dozing(incarnation) = &state.phase else {
                return false;
            };
            if state.wanted {
                return false;
            }
            incarnation.end(reason);
            state.phase = Phase::Closed;
        }
        self.settled.notify_waiters();
        true
    }

    /// Lets those who wait at the door in: the doze is off.
    pub(crate) fn rouse(&self) {
        {
            let mut state = self.lock();
            let Phase::Dozing(incarnation) = &state.phase else {
                return;
            };
            state.phase = Phase::Open(Arc::clone(incarnation));
            state.last_activity = Instant::now();
        }
        self.settled.notify_waiters();
    }

    /// Waits until a doze has ended, whichever way.
    pub(crate) async fn settled(&self) {
        loop {
            let settled = self.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            if !matches!(self.lock().phase, Phase::Dozing(_)) {
                return;
            }
            settled.await;
        }
    }

    /// The incarnation, if one runs; counts nobody.
    pub(crate) fn peek(&self) -> Option<Arc<Incarnation>> {
        match &self.lock().phase {
            Phase::Open(incarnation) => Some(Arc::clone(incarnation)),
            // Frozen, it would not answer.
            Phase::Closed | Phase::Dozing(_) => None,
        }
    }

    /// Counts one call in.
    pub(crate) fn enter(&self) -> Entry {
        let mut state = self.lock();
        let incarnation = match &state.phase {
            Phase::Open(incarnation) => Arc::clone(incarnation),
            Phase::Closed => return Entry::Closed,
            Phase::Dozing(_) => {
                state.wanted = true;
                return Entry::Dozing;
            }
        };
        if state.inside >= self.capacity {
            return Entry::Full;
        }
        state.inside += 1;
        state.last_activity = Instant::now();
        Entry::Open(incarnation)
    }

    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.inside = state.inside.saturating_sub(1);
        state.last_activity = Instant::now();
    }

    pub(crate) fn touch(&self) {
        self.lock().last_activity = Instant::now();
    }

    /// How many are inside, and how long ago anybody did anything.
    pub(crate) fn activity(&self) -> (usize, Duration) {
        let state = self.lock();
        (state.inside, state.last_activity.elapsed())
    }
}
