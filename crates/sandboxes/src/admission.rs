//! A call's right to use a running machine.

use std::sync::Arc;

use capnweb::Stub;
use hutch_protocol::{ApiError, ErrorCode, SandboxPath};

use crate::gate::{Entry, Gate, Incarnation};
use crate::ports::Machine;

/// Whether a call keeps its sandbox awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It wakes, and holds awake while it is open.
    Full,
    /// It only looks: never wakes, never counts.
    Passive,
}

/// Held while a call, or a stream that it opened, uses one incarnation.
pub struct Admission {
    incarnation: Arc<Incarnation>,
    gate: Arc<Gate>,
    weight: Weight,
}

/// Why a call was not let in.
pub(crate) enum Refused {
    Asleep,
    /// Falling asleep; ask again once that is settled.
    Dozing,
    Full,
}

pub(crate) fn full(path: &SandboxPath) -> ApiError {
    let message = format!("sandbox {path} has too many open calls; end some or try again shortly");
    ApiError::new(ErrorCode::CapacityExceeded, message)
}

impl Admission {
    pub(crate) fn full(gate: &Arc<Gate>) -> Result<Self, Refused> {
        match gate.enter() {
            Entry::Open(incarnation) => Ok(Self {
                incarnation,
                gate: Arc::clone(gate),
                weight: Weight::Full,
            }),
            Entry::Closed => Err(Refused::Asleep),
            Entry::Dozing => Err(Refused::Dozing),
            Entry::Full => Err(Refused::Full),
        }
    }

    pub(crate) fn passive(gate: &Arc<Gate>) -> Option<Self> {
        let incarnation = gate.peek()?;
        Some(Self {
            incarnation,
            gate: Arc::clone(gate),
            weight: Weight::Passive,
        })
    }

    /// The machine's main for users. Hostile.
    #[must_use]
    pub fn user(&self) -> Stub {
        self.incarnation.machine.user()
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &Arc<dyn Machine> {
        &self.incarnation.machine
    }

    /// Resolves with the reason when the incarnation is over.
    pub async fn ended(&self) -> &'static str {
        self.incarnation.ended().await
    }

    /// Counts as activity now, for output that somebody follows.
    pub fn touch(&self) {
        self.gate.touch();
    }

    /// A way back into the same incarnation, for an object that lives there.
    /// Holding it keeps nothing awake.
    #[must_use]
    pub fn bind(&self) -> Binding {
        let (incarnation, gate) = (Arc::clone(&self.incarnation), Arc::clone(&self.gate));
        Binding { incarnation, gate }
    }

    /// Whether the memory limit ended a process since somebody last asked; the
    /// host's word, not the machine's.
    pub async fn oom_killed(&self) -> bool {
        match self.incarnation.machine.usage().await {
            Ok(usage) => self.incarnation.new_oom_kills(usage.oom_kills),
            Err(_) => false,
        }
    }
}

/// A way back into one incarnation, and no other.
#[derive(Clone)]
pub struct Binding {
    incarnation: Arc<Incarnation>,
    gate: Arc<Gate>,
}

impl Binding {
    /// Lets a call in, if the incarnation still runs.
    ///
    /// # Errors
    /// `OPERATION_INTERRUPTED`, not admitted, once it has ended;
    /// `CAPACITY_EXCEEDED`.
    pub async fn enter(&self, operation: &str) -> Result<Admission, ApiError> {
        let machine = &self.incarnation.machine;
        loop {
            match Admission::full(&self.gate) {
                Ok(admission) if Arc::ptr_eq(&admission.incarnation, &self.incarnation) => {
                    return Ok(admission);
                }
                Err(Refused::Dozing) => self.gate.settled().await,
                Err(Refused::Full) => return Err(full(&machine.key().path)),
                Ok(_) | Err(Refused::Asleep) => {
                    let error = ApiError::interrupted(operation, "runtime_replaced", false);
                    return Err(error.with("bootId", machine.boot().to_string()));
                }
            }
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if self.weight == Weight::Full {
            self.gate.leave();
        }
    }
}
