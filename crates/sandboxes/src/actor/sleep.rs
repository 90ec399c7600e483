//! Sleeping: by request and by the idle timer.

use std::sync::Arc;
use std::time::Duration;

use hutch_failpoint::failpoint;
use hutch_protocol::event::SandboxEvent;
use hutch_protocol::{ApiError, BackupId, ErrorCode, Generation, Timestamp};
use tokio::time::{Instant, timeout};

use super::{Actor, Running};
use crate::idle::CpuWindow;
use crate::metrics::count;
use crate::ports::{Machine, WorkspaceError};
use crate::record::BackupHandle;

impl Actor {
    /// Sleeps because somebody asked for it; open calls are ended.
    pub(super) async fn sleep(&mut self) -> Result<(), ApiError> {
        self.sleep_for("sleep").await
    }

    /// The same, with the reason that open calls hear.
    pub(super) async fn sleep_for(&mut self, reason: &'static str) -> Result<(), ApiError> {
        self.usable()?;
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        self.gate.close(reason);
        let offset = self.note(SandboxEvent::SleepRequested {}).await;
        self.noted(offset);
        let _ = failpoint!("sleep.requested");
        // A frozen machine writes nothing between the first and the last kill.
        let machine = Arc::clone(&running.incarnation.machine);
        self.freeze(machine).await;
        self.put_to_sleep(running).await
    }

    /// Takes a sample of the machine's use and sleeps if it was idle.
    pub(super) async fn sample(&mut self) {
        let idle = self.record.sleep_after.duration();
        let Some(running) = &mut self.running else {
            return;
        };
        let usage = running.incarnation.machine.usage();
        let usage = timeout(self.settings.control_deadline, usage).await;
        match usage {
            Ok(Ok(usage)) => running.cpu.add(Instant::now(), usage.cpu, idle),
            // What cannot be measured is taken for busy: better awake too long
            // than work cut off.
            _ => running.cpu.clear(),
        }
        let average = running.cpu.average(idle);
        let quiet = average.is_some_and(|use_of_a_core| use_of_a_core < self.settings.idle_cpu);
        let (inside, since) = self.gate.activity();
        running.next_sample = Instant::now() + CpuWindow::next(idle, since);
        let may_sleep = !self.record.keep_alive && quiet && inside == 0 && since >= idle;
        let held = may_sleep && self.held_awake().await;
        self.view.send_if_modified(|view| {
            let changed = view.cpu != average || view.held != held;
            (view.cpu, view.held) = (average, held);
            changed
        });
        if may_sleep && !held {
            self.doze(idle).await;
        }
    }

    /// Falls asleep unless a call comes before the machine is down. Such a call
    /// finds the machine as it was.
    async fn doze(&mut self, idle: Duration) {
        if !self.gate.doze_if_quiet(idle) {
            return;
        }
        let Some(running) = self.running.take() else {
            return self.gate.close("idle");
        };
        let machine = Arc::clone(&running.incarnation.machine);
        self.freeze(machine).await;
        if self.gate.close_if_unwanted("idle") {
            if let Err(error) = self.put_to_sleep(running).await {
                tracing::warn!(%error, "fell asleep without a new snapshot");
            }
            return;
        }
        if let Err(error) = running.incarnation.machine.thaw().await {
            tracing::error!(%error, "a machine that was not to sleep cannot be thawed, and is ended");
            self.gate.close("exited");
            return self.end_lost(running).await;
        }
        self.running = Some(running);
        self.gate.rouse();
    }

    async fn freeze(&mut self, machine: Arc<dyn Machine>) {
        if let Err(error) = machine.freeze(self.settings.freeze_deadline).await {
            tracing::warn!(%error, "not frozen before sleep");
        }
        let _ = failpoint!("sleep.frozen");
    }

    /// A process may have been started with `holdAwake`. Only the daemon inside
    /// knows; what does not answer holds nothing awake.
    async fn held_awake(&mut self) -> bool {
        let Some(running) = &self.running else {
            return false;
        };
        let machine = Arc::clone(&running.incarnation.machine);
        let asked = timeout(self.settings.control_deadline, machine.held_awake()).await;
        matches!(asked, Ok(Ok(true)))
    }

    /// The gate is closed. Ends the machine, archives, moves the handle.
    async fn put_to_sleep(&mut self, running: Running) -> Result<(), ApiError> {
        let machine = &running.incarnation.machine;
        if let Err(error) = machine.stop().await {
            // Something may still write: neither archive nor call it stopped.
            let path = &self.record.key.path;
            let error = ApiError::new(
                ErrorCode::SnapshotFailed,
                format!(
                    "sandbox {path} could not be stopped, so it was not snapshotted: {error}; try sleep again"
                ),
            );
            let _ = running.incarnation.machine.thaw().await;
            self.run_with(running.incarnation.machine.clone(), running.slot);
            return Err(error);
        }
        // Archiving needs no place among the running.
        drop(running);
        count(&self.ports.meter.sleeps);
        let (workspaces, key) = (&self.ports.workspaces, self.record.key.clone());
        let keeping = async {
            failpoint!("sleep.stopped").map_err(|error| WorkspaceError(error.to_string()))?;
            let id = workspaces.keep(key).await?;
            failpoint!("sleep.archived").map_err(|error| WorkspaceError(error.to_string()))?;
            Ok::<_, WorkspaceError>(id)
        };
        match timeout(self.settings.snapshot_deadline, keeping).await {
            Ok(Ok(id)) => self.kept(id).await,
            Ok(Err(error)) => self.not_kept(error.to_string()).await,
            Err(_) => {
                let limit = self.settings.snapshot_deadline;
                self.not_kept(format!("not done within {limit:?}")).await
            }
        }
    }

    async fn kept(&mut self, id: BackupId) -> Result<(), ApiError> {
        let before = self.record.backup;
        let generation = before.map_or(Generation(1), |backup| backup.generation.next());
        let handle = BackupHandle {
            id,
            generation,
            created_at: Timestamp::now(),
        };
        let mut next = self.record.clone();
        next.boot = None;
        next.backup = Some(handle);
        let events = vec![
            SandboxEvent::BackupCreated { backup_id: id },
            SandboxEvent::Stopped {},
        ];
        if let Err(error) = self.commit(next, events).await {
            self.record.boot = None;
            return Err(error);
        }
        let before = before.map(|backup| backup.id);
        let workspaces = &self.ports.workspaces;
        let settled = match failpoint!("sleep.committed") {
            Ok(()) => {
                let key = self.record.key.clone();
                workspaces.settle(key, handle, before).await
            }
            Err(error) => Err(WorkspaceError(error.to_string())),
        };
        if let Err(error) = settled {
            // The volume stays dirty and wins at the next boot, which is right.
            tracing::warn!(%error, "a volume was not settled after its snapshot");
        }
        Ok(())
    }

    /// The snapshot failed. The machine is down all the same; the dirty volume
    /// holds the work and is used at the next boot.
    async fn not_kept(&mut self, error: String) -> Result<(), ApiError> {
        count(&self.ports.meter.snapshot_failures);
        let mut next = self.record.clone();
        next.boot = None;
        let shown: String = error.chars().take(2000).collect();
        let events = vec![
            SandboxEvent::BackupFailed { error: shown },
            SandboxEvent::Stopped {},
        ];
        if let Err(error) = self.commit(next, events).await {
            self.record.boot = None;
            return Err(error);
        }
        let path = &self.record.key.path;
        Err(ApiError::new(
            ErrorCode::SnapshotFailed,
            format!(
                "sandbox {path} is stopped, but its snapshot failed: {error}. Its disk is kept on this host and used at the next start"
            ),
        )
        .with("cause", error))
    }
}
