//! The end of a sandbox.

use hutch_protocol::event::SandboxEvent;
use hutch_protocol::{ApiError, ErrorCode, Timestamp};

use super::Actor;

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
        if let Some(running) = self.running.take()
            && let Err(error) = running.incarnation.machine.stop().await
        {
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
        let backup = self.record.backup.map(|backup| backup.id);
        let mut next = self.record.clone();
        next.boot = None;
        next.backup = None;
        next.destroyed_at = Some(Timestamp::now());
        self.commit(next, vec![SandboxEvent::Destroyed {}]).await?;
        if let Err(error) = self
            .ports
            .workspaces
            .delete(self.record.key.clone(), backup)
            .await
        {
            tracing::warn!(%error, "left for the next start's sweep");
        }
        let forgotten = self.ports.machines.forget(self.record.key.clone()).await;
        if let Err(error) = forgotten {
            tracing::warn!(%error, "its log was left");
        }
        Ok(())
    }
}
