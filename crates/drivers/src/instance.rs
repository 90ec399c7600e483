//! One running sandbox, seen from the host.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BootIdentity, BoxFuture, DriverError};

/// Which of the daemon's two listening sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// What callers' work goes through.
    User,
    /// What only the server uses.
    Control,
}

/// How a boot ended, as the host saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// PID 1's exit code, if it exited by itself.
    pub code: Option<i32>,
    /// The signal that ended PID 1, if one did.
    pub signal: Option<i32>,
    /// How many processes of the sandbox the kernel killed for memory.
    pub oom_kills: u64,
}

impl Exit {
    /// An end of which nothing is known but that it happened.
    pub const UNKNOWN: Self = Self {
        code: None,
        signal: None,
        oom_kills: 0,
    };
}

/// What a sandbox uses now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// CPU time of all its processes since boot, in nanoseconds.
    pub cpu_ns: u64,
    /// The part of it that commands used, and not the daemon, in nanoseconds.
    pub commands_cpu_ns: u64,
    /// Memory charged to it, in bytes, page cache included.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub pids: u64,
    /// Processes that the kernel killed for memory since boot.
    pub oom_kills: u64,
}

/// A running sandbox.
pub trait Instance: Send + Sync {
    /// Which boot this is.
    fn identity(&self) -> &BootIdentity;

    /// Connects to the sandbox's daemon. The daemon is hostile: nothing that
    /// it says is trusted.
    fn connect(&self, port: Port) -> BoxFuture<'_, io::Result<tokio::net::UnixStream>>;

    /// Stops every process of the sandbox from running, within `deadline`. On
    /// failure the sandbox runs on.
    fn freeze(&self, deadline: Duration) -> BoxFuture<'_, Result<(), DriverError>>;

    /// Undoes [`Instance::freeze`].
    fn thaw(&self) -> BoxFuture<'_, Result<(), DriverError>>;

    /// Ends every process, waits until all are gone and removes everything
    /// that the boot made on the host; the volume stays. Idempotent.
    fn stop(&self) -> BoxFuture<'_, Result<(), DriverError>>;

    /// Resolves when PID 1 is gone. Any number of callers may wait.
    fn exited(&self) -> BoxFuture<'_, Exit>;

    /// What the sandbox uses. Answers from the host's own accounts.
    fn usage(&self) -> Result<Usage, DriverError>;

    /// Where the time of the boot went: steps with microseconds, for reports.
    /// Empty for a boot that was adopted.
    fn boot_steps(&self) -> &[(String, u64)] {
        &[]
    }
}
