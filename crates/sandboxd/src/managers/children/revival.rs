//! Another starter for one that ended.
//!
//! PID 1 cannot be killed from inside its namespace, the starter can: `kill -9 -1` does it. What
//! it has not read yet, the next one reads.

use super::error::START_LIMIT;
use super::tree::Tree;
use super::{Children, StartError};
use crate::start::Channel;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::sync::watch;

/// So many starters in turn that ended before they answered anything were killed by something
/// that goes on killing; those who wait are told instead of waiting on.
const PATIENCE: u32 = 3;
/// After a shorter life than this there is a pause.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// The least pause; it doubles with each starter that answered nothing.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How starters have lived so far.
#[derive(Debug)]
pub(super) struct Revival {
    gone: watch::Receiver<u64>,
    born: Instant,
    /// Starters in turn that answered nothing.
    useless: u32,
}

impl Revival {
    pub(super) fn new(gone: watch::Receiver<u64>) -> Self {
        Self {
            gone,
            born: Instant::now(),
            useless: 0,
        }
    }

    /// Notes an end; how long to wait before the next birth.
    fn ended(&mut self, answered: bool) -> Duration {
        self.useless = if answered {
            0
        } else {
            self.useless.saturating_add(1)
        };
        if answered && self.born.elapsed() >= SHORT_LIFE {
            return Duration::ZERO;
        }
        let doubled = 2_u32.saturating_pow(self.useless);
        PAUSE.saturating_mul(doubled).min(PAUSE_MAX)
    }
}

/// Forks a starter whenever one has ended, until its owner is dropped.
pub(super) async fn revive(owner: Weak<Children>, mut revival: Revival) {
    while revival.gone.changed().await.is_ok() {
        let pause = {
            let Some(children) = owner.upgrade() else {
                return;
            };
            let pause = revival.ended(children.answered.swap(false, Ordering::SeqCst));
            tracing::warn!("the process that starts commands was killed; another one is forked");
            if let Some(call) = children.cradle.take_call() {
                children.give_up(call);
            }
            if revival.useless >= PATIENCE {
                children.refuse_all();
            }
            pause
        };
        tokio::time::sleep(pause).await;
        while !born(&owner).await {
            tokio::time::sleep(PAUSE_MAX).await;
        }
        revival.born = Instant::now();
        if let Some(children) = owner.upgrade() {
            children.probe().await;
        }
    }
}

/// Whether there is a starter now, or nobody who needs one.
async fn born(owner: &Weak<Children>) -> bool {
    let Some(children) = owner.upgrade() else {
        return true;
    };
    // A fork copies the daemon's memory map, which takes a while.
    let forking = tokio::task::spawn_blocking(move || {
        let groups = children.groups.as_ref().map(|groups| groups.directory());
        let forked = children
            .reaper
            .replace_starter(|| children.cradle.fork_late(groups, &children.attach));
        if let Err(error) = forked {
            tracing::error!(%error, "no process to start commands can be forked");
            children.refuse_all();
        }
        forked.is_ok()
    });
    forking.await.unwrap_or(false)
}

impl Children {
    /// Finds out which requests a dead starter took along.
    async fn probe(&self) {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        let datagram = Channel::probe(call);
        let sent = self.channel.async_io(Interest::WRITABLE, |channel| {
            let pending = self.pending();
            channel.try_send(&datagram, &[])?;
            let sent = pending.iter().filter(|(_, waiting)| waiting.sent);
            let before = sent.map(|(call, _)| *call).collect();
            self.probes().insert(call, before);
            Ok(())
        });
        // Without room for it the starts that are lost wait until their time is up.
        let _ = tokio::time::timeout(START_LIMIT, sent).await;
    }

    /// A probe has its answer: what was sent before it and waits still was never begun.
    pub(super) fn probed(&self, before: Vec<u64>) {
        self.answered.store(true, Ordering::SeqCst);
        for call in before {
            self.refuse(call, StartError::NotBegun);
        }
    }

    fn refuse(&self, call: u64, error: StartError) -> bool {
        let Some(waiting) = self.pending().remove(&call) else {
            return false;
        };
        drop(self.reaper.settle(None));
        let _ = waiting.answer.send(Err(error));
        true
    }

    /// Gives up the start that a dead starter was at, and ends what there is of it.
    fn give_up(&self, call: u64) {
        if !self.refuse(call, StartError::Killed) {
            return;
        }
        if let Some(groups) = &self.groups {
            let tree = Arc::new(Tree::grouped(Arc::clone(groups), call));
            let ending = async move {
                let _ = tree.end(libc::SIGKILL, Duration::ZERO).await;
            };
            self.cleanups.spawn_on(ending, &self.runtime);
        }
    }

    /// Refuses every start that waits. Only while no starter runs.
    fn refuse_all(&self) {
        self.cradle.drain();
        self.probes().clear();
        let sent: Vec<u64> = {
            let pending = self.pending();
            let sent = pending.iter().filter(|(_, waiting)| waiting.sent);
            sent.map(|(call, _)| *call).collect()
        };
        for call in sent {
            self.refuse(call, StartError::KilledOften);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_while_starters_answer_nothing() {
        let (_sender, gone) = watch::channel(0);
        let mut revival = Revival::new(gone);
        let pauses: Vec<Duration> = (0..9).map(|_| revival.ended(false)).collect();
        assert_eq!(pauses[..2], [PAUSE * 2, PAUSE * 4]);
        assert_eq!(pauses[8], PAUSE_MAX);
        assert_eq!(revival.ended(true), PAUSE);
        revival.born = Instant::now()
            .checked_sub(SHORT_LIFE)
            .unwrap_or_else(Instant::now);
        assert_eq!(revival.ended(true), Duration::ZERO);
    }
}
