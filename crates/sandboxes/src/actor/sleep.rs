//! Sleeping: by request and by the idle timer.

use std::sync::Arc;

use hutch_protocol::event::SandboxEvent;
use hutch_protocol::{ApiError, BackupId, ErrorCode, Generation, Timestamp};
use tokio::time::{Instant, timeout};

use super::{Actor, Running};
use crate::idle::CpuWindow;
use crate::record::BackupHandle;

impl Actor {
    /// Sleeps because somebody asked for it; open calls are ended.
    pub(super) async fn sleep(&mut self) -> Result<(), ApiError> {
        self.usable()?;
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        self.gate.close("sleep");
        let offset = self.note(SandboxEvent::SleepRequested {}).await;
        self.noted(offset);
        self.put_to_sleep(running).await
    }

    /// Takes a sample of the machine's use and sleeps if it was idle.
    pub(super) async fn sample(&mut self) {
        let idle = self.record.sleep_after.duration();
        let Some(running) = &mut self.running else {
            return;
        };
        running.next_sample = Instant::now() + CpuWindow::interval(idle);
        let usage = running.incarnation.machine.usage();
        let usage = timeout(self.settings.control_deadline, usage).await;
        match usage {
            Ok(Ok(usage)) => running.cpu.add(Instant::now(), usage.cpu, idle),
            // What cannot be measured is taken for busy: better awake too long
            // than work cut off.
            _ => running.cpu.clear(),
        }
        let average = running.cpu.average(idle);
        self.view.send_modify(|view| view.cpu = average);
        let quiet = average.is_some_and(|use_of_a_core| use_of_a_core < self.settings.idle_cpu);
        let (inside, since) = self.gate.activity();
        if self.record.keep_alive || !quiet || inside > 0 || since < idle {
            return;
        }
        if self.held_awake().await || !self.gate.close_if_quiet(idle) {
            return;
        }
        if let Some(running) = self.running.take()
            && let Err(error) = self.put_to_sleep(running).await
        {
            tracing::warn!(sandbox = %self.record.key, %error, "fell asleep without a new snapshot");
        }
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
        // A frozen machine writes nothing between the first and the last kill.
        if let Err(error) = machine.freeze(self.settings.freeze_deadline).await {
            tracing::warn!(sandbox = %self.record.key, %error, "not frozen before sleep");
        }
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
            self.run_with(running.incarnation.machine.clone());
            return Err(error);
        }
        let keeping = self.ports.workspaces.keep(self.record.key.clone());
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
        if let Err(error) = self
            .ports
            .workspaces
            .settle(self.record.key.clone(), handle, before)
            .await
        {
            // The volume stays dirty and wins at the next boot, which is right.
            tracing::warn!(sandbox = %self.record.key, %error, "a volume was not settled after its snapshot");
        }
        Ok(())
    }

    /// The snapshot failed. The machine is down all the same; the dirty volume
    /// holds the work and is used at the next boot.
    async fn not_kept(&mut self, error: String) -> Result<(), ApiError> {
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
        ))
    }
}
