//! The Rust client of a hutch server: one WebSocket, typed calls, promise
//! pipelining. `Client::connect(…)`, `.project(…)`, `.sandbox(…)` and a first
//! `exec` cost one round trip together, since only the last answer is waited for.

#![forbid(unsafe_code)]

mod client;
mod decode;
mod error;
mod project;
mod sandbox;
mod spawn;
mod stream;
mod transport;

pub use client::{Client, ProjectInfo};
pub use error::{ClientError, ServerError};
pub use project::{Project, SandboxInfo};
pub use sandbox::{CreateOptions, ExecOptions, ExecResult, Sandbox, SleepAfter};
pub use spawn::{ByteStream, Exit, ExitHandle, Program, SpawnOptions, Spawned};
pub use stream::{Event, EventQuery, EventStream, Tail};
