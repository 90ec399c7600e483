//! The Rust client of a hutch server: one WebSocket, typed calls, promise
//! pipelining. `Client::connect(…)`, `.project(…)`, `.sandbox(…)` and a first
//! `exec` cost one round trip together, since only the last answer is waited for.
//!
//! ```no_run
//! # async fn example() -> Result<(), hutch_client::ClientError> {
//! use hutch_client::{Client, ExecOptions};
//!
//! let client = Client::connect("http://127.0.0.1:7070", "TOKEN".to_owned().into()).await?;
//! let sandbox = client.project("default").sandbox("/sandboxes/main");
//! let result = sandbox.exec("uname -a", &ExecOptions::default()).await?;
//! assert_eq!(result.exit_code, 0);
//! # Ok(()) }
//! ```
//!
//! `examples/tour.rs` takes a sandbox from create to destroy.
//!
//! # When the connection ends
//!
//! Calls that are open fail with [`ClientError::Interrupted`]. Its `admitted` is
//! `Some(false)` when the call was never sent, and may be repeated; else it may have
//! run, and whoever repeats it has to look first. Nothing is repeated by itself. The
//! next call on anything obtained from the same [`Client`] makes a new connection;
//! streams, programs and [`Tail`]s belong to the connection that they began on.
//!
//! # Dropping
//!
//! Dropping a call gives it up: an `exec` or a [`Spawned`] that is dropped ends its
//! command and all that it started. Dropping a stream cancels it.

#![forbid(unsafe_code)]

mod client;
mod decode;
mod error;
mod keys;
mod link;
mod project;
mod sandbox;
mod spawn;
mod stream;
mod tail;
mod transport;

pub use client::{Client, ProjectInfo};
pub use error::{ClientError, ServerError};
pub use keys::{Key, NewKey, NewKeyOptions};
pub use project::{Project, SandboxInfo, StreamInfo};
pub use sandbox::{
    Copied, CreateOptions, ExecOptions, ExecResult, Sandbox, SandboxLog, SleepAfter,
    WriteTarOptions,
};
pub use spawn::{ByteStream, Exit, ExitHandle, Program, SpawnOptions, Spawned};
pub use stream::{Event, EventQuery, EventStream, NewEvent, StreamHead};
pub use tail::Tail;
