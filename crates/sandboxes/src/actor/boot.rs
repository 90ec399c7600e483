//! Waking: volume, machine, environment, record.

use std::sync::Arc;
use std::time::Duration;

use hutch_failpoint::failpoint;
use hutch_protocol::event::SandboxEvent;
use hutch_protocol::{ApiError, BootId, ErrorCode, Timestamp};
use tokio::time::{Instant, timeout};

use super::{Actor, Running, injected};
use crate::describe::BootTimings;
use crate::gate::Incarnation;
use crate::idle::CpuWindow;
use crate::metrics::count;
use crate::ports::{Machine, MachineError, MachineSpec, Prepared, Source};
use crate::record::BootRecord;
use crate::sandbox::StartOptions;
use crate::slots::Slot;

impl Actor {
    /// Boots because a call needs it; only `started` says so.
    pub(super) async fn wake(&mut self) -> Result<(), ApiError> {
        self.usable()?;
        if self.running.is_some() {
            return Ok(());
        }
        self.boot().await
    }

    /// Boots because somebody asked for it.
    pub(super) async fn start(&mut self, options: StartOptions) -> Result<(), ApiError> {
        self.usable()?;
        if options.discard_workspace {
            self.discard().await?;
        }
        let offset = self.note(SandboxEvent::StartRequested {}).await;
        self.noted(offset);
        failpoint!("start.requested").map_err(injected)?;
        self.wake().await
    }

    /// Gives up a workspace that cannot be restored. Only then: a good
    /// workspace is never thrown away by an option of `start`.
    async fn discard(&mut self) -> Result<(), ApiError> {
        if !self.record.projection.degraded {
            return Err(ApiError::new(
                ErrorCode::ValidationFailed,
                format!(
                    "sandbox {} is not degraded, so there is nothing to discard; start it without discardWorkspace",
                    self.record.key.path
                ),
            ));
        }
        let discarded = self.ports.workspaces.discard(self.record.key.clone()).await;
        discarded.map_err(|error| ApiError::new(ErrorCode::FilesystemError, error.to_string()))?;
        let mut next = self.record.clone();
        let backup_id = next.backup.take().map(|backup| backup.id);
        self.commit(next, vec![SandboxEvent::WorkspaceDiscarded { backup_id }])
            .await?;
        let key = self.record.key.clone();
        if let Err(error) = self.ports.workspaces.delete(key, backup_id).await {
            tracing::warn!(%error, "a snapshot that was given up is left");
        }
        Ok(())
    }

    async fn boot(&mut self) -> Result<(), ApiError> {
        let begun = Instant::now();
        let booted = self.boot_machine(begun).await;
        match &booted {
            Ok(()) => self.ports.meter.booted(begun.elapsed()),
            Err(error) => {
                count(&self.ports.meter.boot_failures);
                tracing::warn!(code = %error.code, %error, "not booted");
            }
        }
        booted
    }

    async fn boot_machine(&mut self, begun: Instant) -> Result<(), ApiError> {
        let slot = self.slot()?;
        let prepared = self.prepare().await?;
        failpoint!("start.prepared").map_err(injected)?;
        let workspace_ready = Instant::now();
        let boot = BootId::random();
        tracing::Span::current().record("boot", tracing::field::display(boot));
        let spec = MachineSpec {
            boot,
            key: self.record.key.clone(),
            instance_type: self.record.instance_type,
            volume: prepared.volume.clone(),
        };
        let started = timeout(self.settings.boot_deadline, self.ports.machines.start(spec)).await;
        let machine = match started {
            Ok(Ok(machine)) => machine,
            Ok(Err(error)) => return Err(not_booted(self, &error)),
            Err(_) => {
                let error = MachineError::Failed(format!(
                    "no answer within {:?}",
                    self.settings.boot_deadline
                ));
                return Err(not_booted(self, &error));
            }
        };
        let machine_ready = Instant::now();
        let announced = match failpoint!("start.booted") {
            Ok(()) => self.announce(&machine, &prepared).await,
            Err(error) => Err(injected(error)),
        };
        if let Err(error) = announced {
            if let Err(error) = machine.stop().await {
                tracing::error!(%error, "a failed boot was not cleaned away");
            }
            return Err(error);
        }
        self.last_boot(begun, workspace_ready, machine_ready);
        self.run_with(machine, slot);
        Ok(())
    }

    /// A place among the machines that run.
    fn slot(&self) -> Result<Slot, ApiError> {
        let size = self.record.instance_type;
        self.ports.slots.take(size).map_err(|most| {
            let path = &self.record.key.path;
            let message = format!(
                "sandbox {path} cannot start: {most} of {most} sandboxes of type {size} are awake; put one to sleep, or let more run with --max-instances {size}=N"
            );
            let error = ApiError::new(ErrorCode::CapacityExceeded, message);
            let error = error.with("path", path.to_string());
            error.with("instanceType", size.as_str()).with("maxInstances", most)
        })
    }

    async fn prepare(&mut self) -> Result<Prepared, ApiError> {
        let key = self.record.key.clone();
        let preparing = self.ports.workspaces.prepare(key, self.record.backup);
        let outcome = timeout(self.settings.snapshot_deadline, preparing).await;
        let error = match outcome {
            Ok(Ok(prepared)) => return Ok(prepared),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("not ready within {:?}", self.settings.snapshot_deadline),
        };
        let Some(backup) = self.record.backup else {
            return Err(ApiError::new(
                ErrorCode::FilesystemError,
                format!(
                    "the disk of sandbox {} could not be made ready: {error}",
                    self.record.key.path
                ),
            ));
        };
        let failed = SandboxEvent::RestoreFailed {
            backup_id: backup.id,
            error: error.chars().take(2000).collect(),
        };
        count(&self.ports.meter.restore_failures);
        self.commit(self.record.clone(), vec![failed]).await?;
        Err(ApiError::new(
            ErrorCode::BackupRestoreFailed,
            format!(
                "the workspace of sandbox {} could not be restored from snapshot {}: {error}. Nothing was changed; \
                 start it again once the cause is gone, or give the workspace up with start({{discardWorkspace: true}})",
                self.record.key.path, backup.id
            ),
        )
        .with("backupId", backup.id.to_string()))
    }

    /// Hands the environment over and stores the boot, side by side. No call is
    /// let in before both are done.
    async fn announce(
        &mut self,
        machine: &Arc<dyn Machine>,
        prepared: &Prepared,
    ) -> Result<(), ApiError> {
        let mut next = self.record.clone();
        next.boot = Some(BootRecord {
            boot: machine.boot(),
            started_at: Timestamp::now(),
            identity: machine.identity(),
        });
        let mut events = Vec::with_capacity(2);
        if let Source::Expired(backup_id) = prepared.source {
            next.backup = None;
            events.push(SandboxEvent::WorkspaceExpired { backup_id });
        }
        events.push(SandboxEvent::Started {});
        let restored = match prepared.source {
            Source::Restored(backup_id) => Some(backup_id),
            // The restore failed before, but the volume has it after all.
            Source::Live if next.projection.degraded => next.backup.map(|backup| backup.id),
            _ => None,
        };
        if let Some(backup_id) = restored {
            events.push(SandboxEvent::WorkspaceRestored { backup_id });
        }
        let configured = timeout(
            self.settings.control_deadline,
            machine.configure(self.record.env.clone()),
        );
        let (configured, committed) = tokio::join!(configured, self.commit(next, events));
        committed?;
        let fault = match (failpoint!("start.committed"), configured) {
            (Ok(()), Ok(Ok(()))) => return Ok(()),
            (Err(error), _) => MachineError::Failed(error.to_string()),
            (_, Ok(Err(error))) => error,
            (_, Err(_)) => MachineError::Failed("its daemon did not answer".into()),
        };
        let mut next = self.record.clone();
        next.boot = None;
        self.commit(next, vec![SandboxEvent::Stopped {}]).await?;
        Err(not_booted(self, &fault))
    }

    /// Takes over a machine, new or left by an earlier server.
    pub(crate) fn run_with(&mut self, machine: Arc<dyn Machine>, slot: Slot) {
        let exit = machine.exited();
        let incarnation = Incarnation::new(machine);
        self.gate.open(Arc::clone(&incarnation));
        let cpu = CpuWindow::default();
        self.running = Some(Running {
            incarnation,
            exit,
            cpu,
            next_sample: Instant::now(),
            slot,
        });
    }

    fn last_boot(&self, begun: Instant, workspace: Instant, machine: Instant) {
        // Whole microseconds: more digits are noise to a reader.
        let ms = |span: Duration| (span.as_secs_f64() * 1e6).round() / 1e3;
        let timings = BootTimings {
            workspace_ms: ms(workspace.duration_since(begun)),
            machine_ms: ms(machine.duration_since(workspace)),
            commit_ms: ms(machine.elapsed()),
            total_ms: ms(begun.elapsed()),
        };
        self.view.send_modify(|view| view.last_boot = Some(timings));
    }
}

fn not_booted(actor: &Actor, error: &MachineError) -> ApiError {
    let code = match error {
        MachineError::Unavailable(_) => ErrorCode::DriverUnavailable,
        MachineError::Capacity(_) => ErrorCode::CapacityExceeded,
        MachineError::Failed(_) => ErrorCode::ContainerUnavailable,
    };
    let path = &actor.record.key.path;
    ApiError::new(
        code,
        format!("sandbox {path} could not be started: {error}"),
    )
    .with("path", path.to_string())
}
