//! Results that are still to come, and the calls queued on them.
//!
//! Who holds a [`Deferred`] keeps its work alive: the running task is aborted,
//! or the import released, with the last holder. A call queued on a result
//! holds that result until it has been handed on.

use std::collections::VecDeque;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::codes;
use crate::error::ErrorValue;
use crate::lock::lock;
use crate::meter::Charge;
use crate::outcome::Outcome;
use crate::remains;
use crate::session::ImportLink;
use crate::task;
use crate::value::Value;

/// A result to come.
pub(crate) struct Deferred {
    state: Mutex<State>,
    /// The local work that will complete it.
    task: OnceLock<AbortHandle>,
    /// The peer's result that will complete it.
    link: Option<ImportLink>,
    /// The result it is the same as, from the start.
    alias: Option<Arc<Deferred>>,
    /// What must live until it is completed.
    base: Mutex<Option<Arc<Deferred>>>,
    /// What the value takes of the session's room.
    charge: OnceLock<Charge>,
}

enum State {
    Waiting(Vec<Waiter>),
    /// The outcome is known, earlier waiters are still being served.
    Draining(Vec<Waiter>),
    Done(Outcome),
}

type Waiter = Box<dyn FnOnce(&Outcome, &mut Work) + Send>;

/// Results to complete next: a list instead of recursion, for a peer may queue
/// a long chain.
#[derive(Default)]
pub(crate) struct Work(VecDeque<(Arc<Deferred>, Outcome)>);

impl Work {
    pub(crate) fn push(&mut self, deferred: Arc<Deferred>, outcome: Outcome) {
        self.0.push_back((deferred, outcome));
    }

    pub(crate) fn run(mut self) {
        while let Some((deferred, outcome)) = self.0.pop_front() {
            deferred.settle(outcome, &mut self);
        }
    }
}

impl Deferred {
    fn build(link: Option<ImportLink>, alias: Option<Arc<Deferred>>, state: State) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(state),
            task: OnceLock::new(),
            link,
            alias,
            base: Mutex::new(None),
            charge: OnceLock::new(),
        })
    }

    pub(crate) fn waiting() -> Arc<Self> {
        Self::build(None, None, State::Waiting(Vec::new()))
    }

    pub(crate) fn done(outcome: Outcome) -> Arc<Self> {
        Self::build(None, None, State::Done(outcome))
    }

    pub(crate) fn rejected(error: ErrorValue) -> Arc<Self> {
        Self::done(Outcome::Rejected(Arc::new(error)))
    }

    /// A result at the peer.
    pub(crate) fn imported(link: ImportLink) -> Arc<Self> {
        Self::build(Some(link), None, State::Waiting(Vec::new()))
    }

    /// The same as another result; `finish` sees the outcome first.
    pub(crate) fn alias_of(
        base: Arc<Deferred>,
        finish: impl FnOnce(&Arc<Deferred>, Outcome) -> Outcome + Send + 'static,
    ) -> Arc<Self> {
        let this = Self::build(None, Some(base.clone()), State::Waiting(Vec::new()));
        let weak = Arc::downgrade(&this);
        base.subscribe(move |outcome, work| {
            if let Some(this) = weak.upgrade() {
                let outcome = finish(&this, outcome.clone());
                work.push(this, outcome);
            }
        });
        this
    }

    /// The result it stands for, at the end of all aliases.
    pub(crate) fn origin(self: &Arc<Self>) -> &Arc<Self> {
        let mut at = self;
        while let Some(next) = &at.alias {
            at = next;
        }
        at
    }

    pub(crate) fn link(&self) -> Option<&ImportLink> {
        self.link.as_ref()
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match &*lock(&self.state) {
            State::Done(outcome) => Some(outcome.clone()),
            _ => None,
        }
    }

    /// The outcome, taken out of a result that nobody else holds.
    pub(crate) fn into_outcome(mut self) -> Option<Outcome> {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(state, State::Waiting(Vec::new())) {
            State::Done(outcome) => Some(outcome),
            _ => None,
        }
    }

    pub(crate) fn hold_charge(&self, charge: Charge) {
        let _ = self.charge.set(charge);
    }

    /// Keeps another result alive until this one is complete.
    pub(crate) fn set_base(&self, base: Arc<Deferred>) {
        *lock(&self.base) = Some(base);
    }

    /// Runs the future as this result's work.
    pub(crate) fn run(
        self: &Arc<Self>,
        future: impl Future<Output = Result<Value, ErrorValue>> + Send + 'static,
        finish: impl FnOnce(&Arc<Deferred>, Outcome) -> Outcome + Send + 'static,
    ) {
        let weak = Arc::downgrade(self);
        let task = task::spawn(async move {
            let result = AssertUnwindSafe(future).catch_unwind().await;
            let result = result.unwrap_or_else(|_| Err(panicked()));
            if let Some(this) = Weak::upgrade(&weak) {
                let outcome = finish(&this, result.into());
                this.complete(outcome);
            }
        });
        match task {
            Some(task) => {
                let _ = self.task.set(task);
            }
            None => self.complete(Outcome::Rejected(Arc::new(task::no_runtime()))),
        }
    }

    /// Completes the result and hands on what was queued, in order.
    pub(crate) fn complete(self: &Arc<Self>, outcome: Outcome) {
        let mut work = Work::default();
        work.push(self.clone(), outcome);
        work.run();
    }

    fn settle(&self, outcome: Outcome, work: &mut Work) {
        let mut state = lock(&self.state);
        let State::Waiting(waiters) = &mut *state else {
            return;
        };
        let mut waiters = std::mem::take(waiters);
        *state = State::Draining(Vec::new());
        loop {
            drop(state);
            for waiter in waiters {
                waiter(&outcome, work);
            }
            state = lock(&self.state);
            match &mut *state {
                State::Draining(more) if !more.is_empty() => waiters = std::mem::take(more),
                _ => break,
            }
        }
        *state = State::Done(outcome);
        drop(state);
        let base = lock(&self.base).take();
        drop(base);
    }

    /// Calls back with the outcome: now if it is known, else after all earlier ones.
    pub(crate) fn subscribe(&self, waiter: impl FnOnce(&Outcome, &mut Work) + Send + 'static) {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Waiting(waiters) | State::Draining(waiters) => waiters.push(Box::new(waiter)),
            State::Done(outcome) => {
                let outcome = outcome.clone();
                drop(state);
                let mut work = Work::default();
                waiter(&outcome, &mut work);
                work.run();
            }
        }
    }

    /// Makes sure that the outcome comes: a peer sends a result only if asked.
    pub(crate) fn demand(&self) {
        let mut next = Some(self.step_demand());
        while let Some(Some(deferred)) = next {
            next = Some(deferred.step_demand());
        }
    }

    fn step_demand(&self) -> Option<Arc<Deferred>> {
        if let Some(link) = &self.link {
            if !matches!(*lock(&self.state), State::Done(_)) {
                link.pull();
            }
            return None;
        }
        self.alias.clone().or_else(|| lock(&self.base).clone())
    }

    /// Waits for the outcome.
    pub(crate) async fn wait(&self) -> Outcome {
        self.demand();
        let (send, receive) = oneshot::channel();
        self.subscribe(move |outcome, _| {
            let _ = send.send(outcome.clone());
        });
        receive.await.unwrap_or_else(|_| {
            Outcome::Rejected(Arc::new(ErrorValue::coded(
                codes::CANCELED,
                "The call was canceled.",
            )))
        })
    }
}

pub(crate) fn panicked() -> ErrorValue {
    ErrorValue::new("Error", "The callee failed unexpectedly.")
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
        let base = self.base.get_mut();
        let base = base.unwrap_or_else(PoisonError::into_inner).take();
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let state = std::mem::replace(state, State::Waiting(Vec::new()));
        let holds_more = match &state {
            State::Waiting(waiters) | State::Draining(waiters) => !waiters.is_empty(),
            State::Done(Outcome::Value(_)) => true,
            State::Done(Outcome::Rejected(error)) => !error.props.is_empty(),
        };
        if holds_more || base.is_some() || self.alias.is_some() {
            remains::let_go((self.alias.take(), base, state));
        }
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match &*lock(&self.state) {
            State::Waiting(_) | State::Draining(_) => "Deferred(waiting)",
            State::Done(Outcome::Value(_)) => "Deferred(resolved)",
            State::Done(Outcome::Rejected(_)) => "Deferred(rejected)",
        })
    }
}
