//! The machines that sandboxes run on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use capnweb::Stub;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hutch_protocol::{BootId, EnvMap, InstanceType};
use serde_json::Value;

use crate::record::SandboxKey;

/// A driver could not do it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MachineError {
    /// No machine can run here at all; says why and what to do.
    #[error("{0}")]
    Unavailable(String),
    /// This host has no room for one more.
    #[error("{0}")]
    Capacity(String),
    /// This start or call failed.
    #[error("{0}")]
    Failed(String),
}

/// What to boot.
#[derive(Clone, Debug)]
pub struct MachineSpec {
    /// The new incarnation.
    pub boot: BootId,
    /// Whose machine it is.
    pub key: SandboxKey,
    /// Its size.
    pub instance_type: InstanceType,
    /// The host directory of its volume.
    pub volume: PathBuf,
}

/// How a machine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit status of its first process, where known.
    pub status: Option<i32>,
}

/// What a machine has used, counted on the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of its commands since its start. The daemon's own is not in it: looking at a
    /// sandbox costs the daemon, and must not keep it awake.
    pub cpu: Duration,
    /// Processes ended by the memory limit since its start.
    pub oom_kills: u64,
}

/// The end of what a sandbox's machines and their daemons wrote on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineLog {
    /// Safe to show; what was written inside is the sandbox's word.
    pub text: String,
    /// Whether there was more before it.
    pub truncated: bool,
}

/// A driver, seen from the domain.
pub trait Machines: Send + Sync + 'static {
    /// Boots a machine and connects to it.
    fn start(&self, spec: MachineSpec) -> BoxFuture<'_, Result<Arc<dyn Machine>, MachineError>>;

    /// The machines that an earlier server left running.
    fn running(&self) -> BoxFuture<'_, Result<Vec<Arc<dyn Machine>>, MachineError>>;

    /// The last `most` bytes of a sandbox's log, awake or asleep.
    fn log(&self, key: SandboxKey, most: usize) -> BoxFuture<'_, Result<MachineLog, MachineError>> {
        let _ = (key, most);
        std::future::ready(Ok(MachineLog::default())).boxed()
    }

    /// Drops what is kept of a destroyed sandbox's machines.
    fn forget(&self, key: SandboxKey) -> BoxFuture<'_, Result<(), MachineError>> {
        let _ = key;
        std::future::ready(Ok(())).boxed()
    }
}

/// One running machine.
pub trait Machine: Send + Sync + 'static {
    /// The incarnation.
    fn boot(&self) -> BootId;

    /// Whose machine it is.
    fn key(&self) -> &SandboxKey;

    /// What must be equal for this to be the machine that a record names.
    fn identity(&self) -> Value;

    /// The main that calls of users go to. Hostile.
    fn user(&self) -> Stub;

    /// Replaces the durable environment inside.
    fn configure(&self, env: EnvMap) -> BoxFuture<'_, Result<(), MachineError>>;

    /// Whether a process inside was started to hold the machine awake.
    fn held_awake(&self) -> BoxFuture<'_, Result<bool, MachineError>>;

    /// Opens the control connections of an adopted machine.
    fn connect(&self) -> BoxFuture<'_, Result<(), MachineError>>;

    /// Stops all its processes where they are.
    fn freeze(&self, deadline: Duration) -> BoxFuture<'_, Result<(), MachineError>>;

    /// Lets them go on.
    fn thaw(&self) -> BoxFuture<'_, Result<(), MachineError>>;

    /// Ends every process and releases all that the host holds for it. Twice
    /// is as good as once.
    fn stop(&self) -> BoxFuture<'_, Result<(), MachineError>>;

    /// Resolves when the first process is gone.
    fn exited(&self) -> BoxFuture<'static, Exit>;

    /// What it has used.
    fn usage(&self) -> BoxFuture<'_, Result<Usage, MachineError>>;
}
