//! Commands: running a program and handing over what it writes.

mod capture;
mod decoder;
mod exec;
mod input;
mod launch;
mod output;
mod request;
mod spawn;
mod sse;
mod supervise;

pub use capture::Captured;
pub(crate) use capture::{Budget, Capture};
pub use decoder::Decoder;
pub use exec::Finished;
pub use launch::{Commands, CommandsSettings, Running};
pub use output::Output;
pub use request::{Program, Request, Stdin, invalid, timeout};
pub use spawn::{SpawnExit, Spawned};
pub use sse::failed_stream;
pub(crate) use sse::{BEAT, HEARTBEAT};
pub(crate) use supervise::survived;
pub use supervise::{Ended, supervise};

#[cfg(test)]
mod tests;
