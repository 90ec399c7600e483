//! The one place that reaps.
//!
//! As PID 1 every orphan of the sandbox is ours to reap, so the loop waits for
//! any child. A command may end before its start has been reported; while a start
//! is on its way, statuses that nobody waits for yet are therefore kept.

use super::exit::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait, waitpid};
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

#[derive(Debug)]
struct State {
    starter: Pid,
    waiting: HashMap<Pid, oneshot::Sender<Exit>>,
    early: HashMap<Pid, Exit>,
    starting: usize,
}

/// Who waits for which child.
#[derive(Debug)]
pub(super) struct Reaper {
    scope: Scope,
    state: Mutex<State>,
    /// How many starters have ended.
    starters_gone: watch::Sender<u64>,
}

impl Reaper {
    pub(super) fn new(scope: Scope, starter: Pid) -> Self {
        Self {
            scope,
            state: Mutex::new(State {
                starter,
                waiting: HashMap::new(),
                early: HashMap::new(),
                starting: 0,
            }),
            starters_gone: watch::Sender::new(0),
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

    #[cfg(test)]
    pub(super) fn starter(&self) -> Pid {
        self.state().starter
    }

    /// Tells of each starter that has ended.
    pub(super) fn starters_gone(&self) -> watch::Receiver<u64> {
        self.starters_gone.subscribe()
    }

    /// Replaces a starter that has ended by what `fork` makes. The lock is held meanwhile, so
    /// that the end of the new one cannot be reaped before it is known.
    pub(super) fn replace_starter(
        &self,
        fork: impl FnOnce() -> Result<Pid, Errno>,
    ) -> Result<(), Errno> {
        let mut state = self.state();
        state.starter = fork()?;
        Ok(())
    }

    /// Reaps whatever has ended. Never blocks.
    pub(super) fn sweep(&self) {
        match self.scope {
            Scope::Everything => while self.reap(None) {},
            Scope::Started => {
                let pids: Vec<Pid> = {
                    let state = self.state();
                    let waiting = state.waiting.keys().copied();
                    waiting.chain([state.starter]).collect()
                };
                for pid in pids {
                    self.reap(Some(pid));
                }
            }
        }
    }

    fn reap(&self, whom: Option<Pid>) -> bool {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        let ended = rustix::io::retry_on_intr(|| match whom {
            Some(pid) => waitpid(Some(pid), options),
            None => wait(options),
        });
        let Ok(Some((pid, status))) = ended else {
            return false;
        };
        let Some(exit) = exit_of(status) else {
            self.stopped(pid);
            return true;
        };
        let waiter = {
            let mut state = self.state();
            if pid == state.starter {
                self.starters_gone.send_modify(|gone| *gone += 1);
                return true;
            }
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

impl Reaper {
    /// A child was stopped. Commands may be; the starter, and what is on its way to become a
    /// command, must go on, or nothing can be started any more.
    fn stopped(&self, pid: Pid) {
        let ours = {
            let state = self.state();
            pid == state.starter || (state.starting > 0 && !state.waiting.contains_key(&pid))
        };
        if ours {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    status
        .exit_status()
        .map(Exit::Code)
        .or_else(|| status.terminating_signal().map(Exit::Signal))
}
