//! Sessions without a transport: what they send is collected.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::connection::CloseReason;
use super::outbox::Next;
use super::shared::Shared;
use super::tables::{ExportKind, ImportKind};
use crate::lock::lock;
use crate::outcome::Outcome;

/// Messages, one a line.
pub(crate) enum Collected {
    All(String),
    TooMuch,
}

/// A result that the peer has asked for and not got.
pub(super) struct Asked(Arc<Shared>);

impl Asked {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        shared.asked.fetch_add(1, Ordering::AcqRel);
        Self(shared.clone())
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.0.asked.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.outbox.wake();
        }
    }
}

impl Shared {
    /// The peer will answer nothing that is sent from now on: calls fail.
    pub(crate) fn mute(&self) {
        lock(&self.tables).mute = true;
    }

    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        lock(&self.tables).closed.clone()
    }

    /// The peer has sent everything: what waits for more of it fails.
    pub(crate) fn no_more_input(&self) {
        let error = Arc::new(CloseReason::BatchEnded.error(true));
        let (mut results, mut flows, mut channels) = (Vec::new(), Vec::new(), Vec::new());
        {
            let tables = lock(&self.tables);
            for import in tables.imports.values() {
                match &import.kind {
                    ImportKind::Result(deferred) => results.extend(deferred.upgrade()),
                    ImportKind::Write(flow, _) | ImportKind::Sink(_, flow) => {
                        flows.push(flow.clone());
                    }
                    ImportKind::Stub(_) | ImportKind::Finish(_) => {}
                }
            }
            for export in tables.exports.values() {
                if let ExportKind::Sink { channel, .. } = &export.kind {
                    channels.push(channel.clone());
                }
            }
        }
        for result in results {
            result.complete(Outcome::Rejected(error.clone()));
        }
        for flow in flows {
            flow.fail(error.clone());
        }
        for channel in channels {
            // One that was closed keeps what it holds.
            channel.fail(error.clone());
        }
    }

    /// What waits for the peer.
    pub(crate) fn collect(&self, most: usize) -> Collected {
        let mut lines = String::new();
        if self.append(&mut lines, most) {
            Collected::All(lines)
        } else {
            Collected::TooMuch
        }
    }

    /// What the peer gets until it has everything that it has asked for.
    pub(crate) async fn collect_until_settled(&self, most: usize) -> Collected {
        let mut lines = String::new();
        loop {
            let settled = self.asked.load(Ordering::Acquire) == 0 || self.is_closed();
            if !self.append(&mut lines, most) {
                return Collected::TooMuch;
            }
            if settled {
                return Collected::All(lines);
            }
            self.outbox.filled().await;
        }
    }

    fn append(&self, lines: &mut String, most: usize) -> bool {
        loop {
            match self.outbox.next(self.limits().queue_bytes) {
                Next::Send(text) => {
                    if lines.len() + text.len() >= most {
                        return false;
                    }
                    if !lines.is_empty() {
                        lines.push('\n');
                    }
                    lines.push_str(&text);
                }
                Next::Release(ids) => self.release_imports(&ids),
                Next::Nothing => return true,
            }
        }
    }
}
