//! What anybody may know of a sandbox without waking it.

use std::time::Duration;

use hutch_protocol::{
    BackupId, BootId, EnvMap, InstanceType, SandboxPath, SleepAfter, Status, Timestamp,
};
use serde::Serialize;

use crate::SandboxRecord;

/// Where the time of the last boot went, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BootTimings {
    /// Making the volume ready, a restore included.
    pub workspace_ms: f64,
    /// From the request to the driver to a connected daemon.
    pub machine_ms: f64,
    /// Handing over the environment and storing the event, side by side.
    pub commit_ms: f64,
    /// All of it.
    pub total_ms: f64,
}

/// Why a running sandbox is awake.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Awake {
    /// Calls and streams that are open.
    pub open_calls: usize,
    /// Milliseconds since the last activity.
    pub quiet_ms: u64,
    /// CPU use over the idle time, in parts of a core, once known.
    pub cpu: Option<f64>,
    /// Milliseconds until sleep if nothing happens; none with `keepAlive` or
    /// while calls are open.
    pub sleeps_in_ms: Option<u64>,
    /// One sentence for people.
    pub reason: String,
}

/// The answer of `describe`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The path.
    pub path: SandboxPath,
    /// Where it is in its life.
    pub status: Status,
    /// Whether a machine runs.
    pub running: bool,
    /// The size.
    pub instance_type: InstanceType,
    /// When it was created.
    pub created_at: Timestamp,
    /// The idle time.
    pub sleep_after: SleepAfter,
    /// Whether the idle timer is off.
    pub keep_alive: bool,
    /// The durable environment.
    pub env: EnvMap,
    /// The newest good snapshot.
    pub last_backup_id: Option<BackupId>,
    /// Whether the last restore failed.
    pub degraded: bool,
    /// The running incarnation.
    pub boot_id: Option<BootId>,
    /// When the running incarnation started.
    pub started_at: Option<Timestamp>,
    /// When it was destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destroyed_at: Option<Timestamp>,
    /// Why it is awake; none while it sleeps.
    pub awake: Option<Awake>,
    /// Where the time of this server's last boot of it went.
    pub last_boot: Option<BootTimings>,
}

impl Description {
    pub(crate) fn of(
        record: &SandboxRecord,
        awake: Option<Awake>,
        last_boot: Option<BootTimings>,
    ) -> Self {
        let boot = record.boot.as_ref();
        Self {
            path: record.key.path.clone(),
            status: record.projection.status.unwrap_or(Status::Created),
            running: record.projection.running,
            instance_type: record.instance_type,
            created_at: record.created_at,
            sleep_after: record.sleep_after,
            keep_alive: record.keep_alive,
            env: record.env.clone(),
            last_backup_id: record.backup.map(|backup| backup.id),
            degraded: record.projection.degraded,
            boot_id: boot.map(|boot| boot.boot),
            started_at: boot.map(|boot| boot.started_at),
            destroyed_at: record.destroyed_at,
            awake,
            last_boot,
        }
    }
}

impl Awake {
    pub(crate) fn of(
        record: &SandboxRecord,
        open: usize,
        quiet: Duration,
        cpu: Option<f64>,
        idle_cpu: f64,
    ) -> Self {
        let idle = record.sleep_after.duration();
        let busy = cpu.is_some_and(|cpu| cpu >= idle_cpu);
        let reason = if record.keep_alive {
            "keepAlive is on".to_owned()
        } else if open > 0 {
            format!("{open} calls or streams are open")
        } else if quiet >= idle && busy {
            "its processes use the CPU".to_owned()
        } else {
            format!("something happened in the last {}", record.sleep_after)
        };
        let waits = record.keep_alive || open > 0;
        let left = idle.saturating_sub(quiet).as_millis();
        Self {
            open_calls: open,
            quiet_ms: u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX),
            cpu,
            sleeps_in_ms: (!waits).then(|| u64::try_from(left).unwrap_or(u64::MAX)),
            reason,
        }
    }
}
