//! The application's hold on a session.

use std::fmt;
use std::sync::Arc;

use super::link::{ImportLink, Lifeline};
use super::shared::Shared;
use crate::budget::Budget;
use crate::codes;
use crate::error::ErrorValue;
use crate::limits::Limits;
use crate::object::Object;
use crate::stub::{Inner, Stub};
use crate::target::Target;
use crate::value::Value;

/// A session. Clones share it.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
    lifeline: Arc<Lifeline>,
}

/// The sizes of a session's tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// References to the peer, its main object included.
    pub imports: usize,
    /// References that the peer holds, the main object included.
    pub exports: usize,
    /// Received calls that wait or run.
    pub pending_calls: usize,
    /// Bytes of their arguments.
    pub pending_bytes: usize,
    /// Bytes of results that the peer has not released.
    pub result_bytes: usize,
    /// Unread bytes of received streams.
    pub stream_bytes: usize,
    /// Bytes queued for the peer.
    pub queue_bytes: usize,
}

/// Why a session ended.
#[derive(Debug, Clone)]
pub enum CloseReason {
    /// This side let go of it.
    Dropped,
    /// This side ended it with an error, its own or one of the protocol.
    Aborted(ErrorValue),
    /// The peer ended it with an error.
    PeerAborted(ErrorValue),
    /// The peer closed the WebSocket.
    PeerClosed {
        /// The status; 1005 if the peer gave none, 1006 if it just vanished.
        code: u16,
        /// The reason, maybe empty.
        reason: String,
    },
    /// The transport failed.
    Failed(String),
    /// The HTTP request that carried the batch is answered; nothing more comes.
    BatchEnded,
}

impl CloseReason {
    /// What calls that the end of the session cuts off fail with. Unless the
    /// error came with its own, `code` is `RPC_DISCONNECTED` and
    /// `details.mayHaveRun` says whether the call had been sent.
    pub fn error(&self, may_have_run: bool) -> ErrorValue {
        let mut error = match self {
            Self::Dropped => ErrorValue::new("Error", "The RPC session was closed by this side."),
            Self::Aborted(error) | Self::PeerAborted(error) => error.clone(),
            Self::PeerClosed { code, reason } => {
                ErrorValue::new("Error", format!("Peer closed WebSocket: {code} {reason}"))
            }
            Self::Failed(_) => ErrorValue::new("Error", "WebSocket connection failed."),
            Self::BatchEnded => ErrorValue::new("Error", "Batch RPC request ended."),
        };
        if error.props.get("code").is_none() {
            error.props.insert("code", codes::DISCONNECTED);
            let mut details = Object::new();
            details.insert("mayHaveRun", may_have_run);
            if let Self::Failed(cause) = self {
                details.insert("cause", cause.as_str());
            }
            error.props.insert("details", Value::Object(details));
        }
        error.ended_session()
    }
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, lifeline: Arc<Lifeline>) -> Self {
        Self { shared, lifeline }
    }

    /// A session whose messages are carried by hand.
    pub(crate) fn without_transport(
        main: Option<Arc<dyn Target>>,
        limits: Limits,
    ) -> (Self, Arc<Shared>) {
        let (shared, lifeline) = Shared::new(main, limits);
        (Self::new(shared.clone(), lifeline), shared)
    }

    /// The peer's main object.
    pub fn main(&self) -> Stub {
        Stub::new(Inner::Import(ImportLink::new(
            self.shared.clone(),
            0,
            Some(self.lifeline.clone()),
        )))
    }

    /// The sizes of the tables now.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.shared.limits()
    }

    /// Puts other limits in force from the next message on. What was admitted
    /// stays. A server can so start tight and widen once it knows the caller.
    pub fn set_limits(&self, limits: Limits) {
        self.shared.set_limits(limits);
    }

    /// Counts what the peer makes this side hold from now on towards a budget,
    /// too. A call or result for which there is no room is refused as one
    /// beyond the session's own limits is.
    pub fn share(&self, budget: &Budget) {
        self.shared.share(budget.clone());
    }

    /// Ends the session and tells the peer why.
    pub fn abort(&self, error: ErrorValue) {
        self.shared.close(CloseReason::Aborted(error));
    }

    /// Whether the session has ended.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Resolves when the session has ended.
    pub async fn closed(&self) -> CloseReason {
        self.shared.closed().await
    }

    /// A hold that does not keep the session alive.
    pub fn downgrade(&self) -> WeakConnection {
        WeakConnection(Arc::downgrade(&self.shared))
    }
}

/// A hold on a session that does not keep it alive, for a main object that
/// needs its own session.
#[derive(Clone)]
pub struct WeakConnection(std::sync::Weak<Shared>);

impl WeakConnection {
    /// The session, if it has not ended.
    pub fn upgrade(&self) -> Option<Connection> {
        let shared = self.0.upgrade()?;
        let lifeline = shared.lifeline()?;
        Some(Connection::new(shared, lifeline))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Connection").field(&self.stats()).finish()
    }
}

impl fmt::Debug for WeakConnection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("WeakConnection")
    }
}
