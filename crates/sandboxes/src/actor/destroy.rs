//! The end of a sandbox.

use hutch_failpoint::failpoint;
use hutch_protocol::event::SandboxEvent;
use hutch_protocol::{ApiError, ErrorCode, Timestamp};

use super::{Actor, injected};
use crate::ports::{MachineError, WorkspaceError};

impl Actor {
    /// Machine first, tombstone second, data last: a failure before the
    /// tombstone leaves a live sandbox, one after it leaves only garbage.
    pub(super) async fn destroy(&mut self) -> Result<(), ApiError> {
        if self.record.destroyed_at.is_some() {
            return Ok(());
        }
        self.gate.close("destroyed");
        let offset = self.note(SandboxEvent::DestroyRequested {}).await;
        self.noted(offset);
        if let Some(running) = self.running.take() {
            let stopped = match failpoint!("destroy.requested") {
                Ok(()) => running.incarnation.machine.stop().await,
                Err(error) => Err(MachineError::Failed(error.to_string())),
            };
            if let Err(error) = stopped {
                let path = &self.record.key.path;
                let error = ApiError::new(
                    ErrorCode::ContainerUnavailable,
                    format!(
                        "the machine of sandbox {path} could not be ended: {error}; destroy it again"
                    ),
                );
                self.run_with(running.incarnation.machine.clone(), running.slot);
                return Err(error);
            }
        }
        failpoint!("destroy.stopped").map_err(injected)?;
        let backup = self.record.backup.map(|backup| backup.id);
        let mut next = self.record.clone();
        next.boot = None;
        next.backup = None;
        next.destroyed_at = Some(Timestamp::now());
        self.commit(next, vec![SandboxEvent::Destroyed {}]).await?;
        let key = self.record.key.clone();
        let deleted = match failpoint!("destroy.committed") {
            Ok(()) => self.ports.workspaces.delete(key.clone(), backup).await,
            Err(error) => Err(WorkspaceError(error.to_string())),
        };
        if let Err(error) = deleted {
            tracing::warn!(%error, "left for the next start's sweep");
        }
        let forgotten = match failpoint!("destroy.swept") {
            Ok(()) => self.ports.machines.forget(key).await,
            Err(error) => Err(MachineError::Failed(error.to_string())),
        };
        if let Err(error) = forgotten {
            tracing::warn!(%error, "its log was left");
        }
        Ok(())
    }
}
