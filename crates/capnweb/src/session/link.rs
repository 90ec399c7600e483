//! A hold on something of the peer.

use std::sync::{Arc, Weak};

use super::shared::Shared;
use crate::deferred::Deferred;
use crate::dispatch::Op;
use crate::error::ErrorValue;

/// A hold on an import. Dropping it lets the session release the import.
pub(crate) struct ImportLink {
    session: Arc<Shared>,
    id: i64,
    _lifeline: Option<Arc<Lifeline>>,
}

/// Held by everything that needs the session; when the last one is dropped the
/// session ends.
pub(super) struct Lifeline(pub(super) Weak<Shared>);

impl Drop for Lifeline {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.let_go();
        }
    }
}

impl ImportLink {
    pub(super) fn new(session: Arc<Shared>, id: i64, lifeline: Option<Arc<Lifeline>>) -> Self {
        Self {
            session,
            id,
            _lifeline: lifeline,
        }
    }

    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    pub(crate) fn session(&self) -> &Arc<Shared> {
        &self.session
    }

    /// Sends a call. Gives it back if the import is not at the peer any more.
    pub(crate) fn send(&self, op: Op) -> Result<Arc<Deferred>, Op> {
        self.session.send_push(self.id, op)
    }

    /// Asks the peer for the result, once.
    pub(crate) fn pull(&self) {
        self.session.send_pull(self.id);
    }

    /// What a call fails with that cannot be sent any more.
    pub(crate) fn gone(&self) -> ErrorValue {
        self.session.gone()
    }
}

impl Drop for ImportLink {
    fn drop(&mut self) {
        if self.id != 0 {
            self.session.note_released(self.id);
        }
    }
}
