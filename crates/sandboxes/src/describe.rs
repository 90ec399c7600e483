//! What anybody may know of a sandbox without waking it.

use std::time::Duration;

use hutch_protocol::{
    BackupId, BootId, EnvMap, InstanceType, SandboxPath, SleepAfter, Status, Timestamp,
};
use serde::Serialize;

use crate::SandboxRecord;
use crate::actor::View;

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

/// One thing that keeps a sandbox awake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// `keepAlive`, `openCalls`, `recentActivity`, `holdAwake`, `cpu` or
    /// `measuring`.
    pub kind: &'static str,
    /// The same for people.
    pub message: String,
}

impl Reason {
    const fn new(kind: &'static str, message: String) -> Self {
        Self { kind, message }
    }
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
    /// Milliseconds until sleep if nothing happens; none while something holds
    /// it awake whose end nobody knows.
    pub sleeps_in_ms: Option<u64>,
    /// The same as a point in time.
    pub sleeps_at: Option<Timestamp>,
    /// The first of the reasons.
    pub reason: String,
    /// All that keeps it awake now.
    pub reasons: Vec<Reason>,
}

/// What the actor of a sandbox and its machine do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeState {
    /// The offset of the last event that the projection includes.
    pub offset: u64,
    /// The step that is being done: `wake`, `start`, `sleep`, `restart`,
    /// `destroy` or `configure`.
    pub step: Option<&'static str>,
    /// Steps that wait for it.
    pub waiting_calls: usize,
    /// The running incarnation.
    pub boot_id: Option<BootId>,
    /// When the running incarnation started.
    pub started_at: Option<Timestamp>,
    /// Why it is awake; none while it sleeps.
    pub awake: Option<Awake>,
    /// Where the time of this server's last boot of it went.
    pub last_boot: Option<BootTimings>,
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
    pub(crate) fn of(view: &View, open: usize, quiet: Duration, idle_cpu: f64) -> Self {
        let record = &view.record;
        let idle = record.sleep_after.duration();
        let mut reasons = Vec::new();
        if record.keep_alive {
            reasons.push(Reason::new("keepAlive", "keepAlive is on".to_owned()));
        }
        if open > 0 {
            let (calls, are) = if open == 1 {
                ("call or stream", "is")
            } else {
                ("calls or streams", "are")
            };
            reasons.push(Reason::new(
                "openCalls",
                format!("{open} {calls} {are} open"),
            ));
        } else if quiet < idle {
            let message = format!("something happened in the last {}", record.sleep_after);
            reasons.push(Reason::new("recentActivity", message));
        }
        if view.held {
            let message = "a process that was started with holdAwake runs".to_owned();
            reasons.push(Reason::new("holdAwake", message));
        }
        let busy = view.cpu.is_some_and(|cpu| cpu >= idle_cpu);
        if busy {
            let message = format!(
                "its processes used the CPU in the last {}",
                record.sleep_after
            );
            reasons.push(Reason::new("cpu", message));
        } else if view.cpu.is_none() && reasons.is_empty() {
            let message = format!(
                "its use of the CPU is not known for {} yet",
                record.sleep_after
            );
            reasons.push(Reason::new("measuring", message));
        }
        // Use of the CPU may end in time unless nothing else is awaited.
        let unknown = record.keep_alive || open > 0 || view.held || (busy && quiet >= idle);
        let left = (!unknown).then(|| idle.saturating_sub(quiet));
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let at = |left: Duration| {
            let left = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(Timestamp::now().millis().saturating_add(left))
        };
        Self {
            open_calls: open,
            quiet_ms: millis(quiet),
            cpu: view.cpu,
            sleeps_in_ms: left.map(millis),
            sleeps_at: left.map(at),
            reason: reasons.first().map_or_else(
                || "it is about to sleep".to_owned(),
                |first| first.message.clone(),
            ),
            reasons,
        }
    }
}
