//! Two peers joined.
//!
//! Lock order: tables, then the outbox. Neither is held while a value, a
//! target or a task of the application is run or dropped.

mod admission;
mod collect;
mod connection;
mod driver;
mod exporter;
mod link;
mod outbox;
mod read;
mod receive;
mod send;
mod shared;
mod tables;

use std::sync::Arc;

pub(crate) use admission::Admission;
pub(crate) use collect::Collected;
pub use connection::{CloseReason, Connection, Stats, WeakConnection};
pub(crate) use exporter::Exporter;
pub(crate) use link::ImportLink;
pub(crate) use read::too_large;
pub(crate) use shared::Shared;

use crate::limits::Limits;
use crate::target::Target;
use crate::transport::Transport;

/// Starts sessions.
#[derive(Debug)]
pub struct Session;

impl Session {
    /// Joins a peer over a WebSocket and offers it `main`.
    ///
    /// The returned future drives the session and ends with it: run it, on a
    /// tokio runtime. The session ends when the peer goes away, at a breach of
    /// the protocol, by [`Connection::abort`], or when every [`Connection`] and
    /// every stub and stream of the peer here is dropped. A side that only
    /// serves must therefore keep its connection. Dropping the future ends the
    /// session at once.
    ///
    /// ```no_run
    /// # async fn example(io: tokio::net::UnixStream) -> Result<(), Box<dyn std::error::Error>> {
    /// use capnweb::{Limits, Session, ws};
    ///
    /// let limits = Limits::default();
    /// let socket = ws::client(io, "ws://sandbox/rpc", &limits).await?;
    /// let (connection, driver) = Session::start(socket, None, limits);
    /// tokio::spawn(driver);
    /// let answer = connection.main().call("utils.ping", vec![]).await?;
    /// # Ok(()) }
    /// ```
    pub fn start<T: Transport>(
        io: T,
        main: Option<Arc<dyn Target>>,
        limits: Limits,
    ) -> (
        Connection,
        impl Future<Output = CloseReason> + Send + 'static + use<T>,
    ) {
        let (shared, lifeline) = Shared::new(main, limits);
        let connection = Connection::new(shared.clone(), lifeline);
        (connection, driver::drive(io, shared))
    }
}
