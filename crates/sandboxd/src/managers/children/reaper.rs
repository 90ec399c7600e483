//! The one place that reaps.
//!
//! As PID 1 every orphan of the sandbox is ours to reap, so the loop waits for
//! any child. A command may end before its start has been reported; while a start
//! is on its way, statuses that nobody waits for yet are therefore kept.

use super::exit::Exit;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait, waitpid};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// Whose children to reap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All: this process is the init of its pid namespace.
    Everything,
    /// Those that were started here: this process has other children too.
    Started,
}

/// The most early statuses kept; more only come from orphans, which nobody asks for.
const EARLY_LIMIT: usize = 8192;

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<Pid, oneshot::Sender<Exit>>,
    early: HashMap<Pid, Exit>,
    starting: usize,
}

/// Who waits for which child.
#[derive(Debug)]
pub(super) struct Reaper {
    scope: Scope,
    state: Mutex<State>,
    starter: Pid,
    starter_gone: watch::Sender<bool>,
}

impl Reaper {
    pub(super) fn new(scope: Scope, starter: Pid) -> Self {
        Self {
            scope,
            state: Mutex::default(),
            starter,
            starter_gone: watch::Sender::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a start is on its way; `settle` ends that.
    pub(super) fn begin(&self) {
        self.state().starting += 1;
    }

    /// Notes that a start has been answered, and begins to wait for `pid` if it runs.
    pub(super) fn settle(&self, pid: Option<Pid>) -> oneshot::Receiver<Exit> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            if let Some(pid) = pid {
                match state.early.remove(&pid) {
                    // A receiver is held right here, so this cannot fail.
                    Some(exit) => {
                        let _ = sender.send(exit);
                    }
                    None => drop(state.waiting.insert(pid, sender)),
                }
            }
            state.starting = state.starting.saturating_sub(1);
            if state.starting == 0 {
                state.early.clear();
            }
        }
        if self.scope == Scope::Started {
            self.sweep();
        }
        receiver
    }

    /// How many started children have not ended.
    pub(super) fn running(&self) -> usize {
        self.state().waiting.len()
    }

    /// Resolves once the starter has ended.
    pub(super) async fn starter_gone(&self) {
        let mut gone = self.starter_gone.subscribe();
        let _ = gone.wait_for(|gone| *gone).await;
    }

    /// Reaps whatever has ended. Never blocks.
    pub(super) fn sweep(&self) {
        match self.scope {
            Scope::Everything => while self.reap(None) {},
            Scope::Started => {
                let pids: Vec<Pid> = self
                    .state()
                    .waiting
                    .keys()
                    .copied()
                    .chain([self.starter])
                    .collect();
                for pid in pids {
                    self.reap(Some(pid));
                }
            }
        }
    }

    fn reap(&self, whom: Option<Pid>) -> bool {
        let options = WaitOptions::NOHANG;
        let ended = rustix::io::retry_on_intr(|| match whom {
            Some(pid) => waitpid(Some(pid), options),
            None => wait(options),
        });
        let Ok(Some((pid, status))) = ended else {
            return false;
        };
        let Some(exit) = exit_of(status) else {
            return true;
        };
        if pid == self.starter {
            self.starter_gone.send_replace(true);
            return true;
        }
        let waiter = {
            let mut state = self.state();
            let waiter = state.waiting.remove(&pid);
            if waiter.is_none() && state.starting > 0 && state.early.len() < EARLY_LIMIT {
                state.early.insert(pid, exit);
            }
            waiter
        };
        if let Some(waiter) = waiter {
            // The call may have given up already.
            let _ = waiter.send(exit);
        }
        true
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    status
        .exit_status()
        .map(Exit::Code)
        .or_else(|| status.terminating_signal().map(Exit::Signal))
}
