//! What is stored of a sandbox besides its events.

use std::fmt;

use hutch_protocol::{
    BackupId, BootId, CreateInput, EnvMap, Generation, InstanceType, ProjectId, Projection,
    SandboxPath, SleepAfter, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of [`SandboxRecord`] that this code writes.
pub const RECORD_VERSION: u32 = 1;

/// A sandbox among all of a data directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SandboxKey {
    /// The owning project.
    pub project: ProjectId,
    /// The path within it.
    pub path: SandboxPath,
}

impl fmt::Display for SandboxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.project, self.path)
    }
}

/// The newest good snapshot of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupHandle {
    /// The snapshot in the store.
    pub id: BackupId,
    /// The volume content that it equals.
    pub generation: Generation,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The machine that a record believes to run; all of it must agree before the
/// next server adopts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootRecord {
    /// The incarnation.
    pub boot: BootId,
    /// When it started.
    pub started_at: Timestamp,
    /// The driver's own proof of identity.
    pub identity: Value,
}

/// The durable record of one sandbox. Its existence is the sandbox's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxRecord {
    /// Who this is; written once.
    pub key: SandboxKey,
    /// When it was created.
    pub created_at: Timestamp,
    /// The size, fixed for life.
    pub instance_type: InstanceType,
    /// The idle time.
    pub sleep_after: SleepAfter,
    /// Whether the idle timer is off.
    pub keep_alive: bool,
    /// The durable environment.
    pub env: EnvMap,
    /// The newest good snapshot.
    pub backup: Option<BackupHandle>,
    /// The machine that runs, if one does.
    pub boot: Option<BootRecord>,
    /// When it was destroyed.
    pub destroyed_at: Option<Timestamp>,
    /// What the stream folds into.
    pub projection: Projection,
    /// The stream's last offset when this was written.
    pub offset: u64,
}

impl SandboxRecord {
    /// The record of a sandbox that is being born.
    #[must_use]
    pub fn born(key: SandboxKey, input: &CreateInput, created_at: Timestamp) -> Self {
        let mut env = EnvMap::new();
        if let Some(patch) = &input.env {
            hutch_protocol::env::apply(&mut env, patch);
        }
        Self {
            key,
            created_at,
            instance_type: input.instance_type,
            sleep_after: input.sleep_after.unwrap_or_default(),
            keep_alive: input.keep_alive.unwrap_or(false),
            env,
            backup: None,
            boot: None,
            destroyed_at: None,
            projection: Projection::default(),
            offset: 0,
        }
    }
}
