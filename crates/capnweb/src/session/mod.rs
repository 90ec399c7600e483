//! Two peers joined.

use std::sync::Arc;

use crate::error::ErrorValue;
use crate::limits::Limits;
use crate::stub::Stub;
use crate::target::Target;
use crate::transport::Transport;

/// Starts sessions.
#[derive(Debug)]
pub struct Session;

impl Session {
    /// Joins a peer over a WebSocket and offers it `main`.
    ///
    /// The returned future drives the session and ends with it: run it. The
    /// session ends when the peer goes away, at a breach of the protocol, by
    /// [`Connection::abort`], or when every [`Connection`] and every stub and
    /// stream of the peer here is dropped. A side that only serves must
    /// therefore keep its connection. Dropping the future ends the session at once.
    pub fn start(
        io: impl Transport,
        main: Option<Arc<dyn Target>>,
        limits: Limits,
    ) -> (
        Connection,
        impl Future<Output = CloseReason> + Send + 'static,
    ) {
        let _ = (io, main);
        (Connection { limits }, async { CloseReason::Dropped })
    }
}

/// A session. Clones share it.
#[derive(Debug, Clone)]
pub struct Connection {
    limits: Limits,
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
        /// The status; 1006 if there was none.
        code: u16,
        /// The reason, maybe empty.
        reason: String,
    },
    /// The transport failed.
    Failed(String),
}

impl Connection {
    /// The peer's main object.
    pub fn main(&self) -> Stub {
        Stub::rejected(ErrorValue::new("Error", "not connected"))
    }

    /// The sizes of the tables now.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Puts other limits in force from the next message on. What was admitted stays.
    pub fn set_limits(&self, limits: Limits) {
        let _ = limits;
    }

    /// Ends the session and tells the peer why.
    pub fn abort(&self, error: ErrorValue) {
        drop(error);
    }

    /// Resolves when the session has ended.
    pub async fn closed(&self) -> CloseReason {
        std::future::pending().await
    }
}
