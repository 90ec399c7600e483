//! Changes of the durable configuration.

use hutch_protocol::event::SandboxEvent;
use hutch_protocol::{ApiError, EnvPatch, SleepAfter};
use tokio::time::{Instant, timeout};

use super::Actor;

impl Actor {
    pub(super) async fn configure(
        &mut self,
        env: Option<EnvPatch>,
        sleep_after: Option<SleepAfter>,
        keep_alive: Option<bool>,
    ) -> Result<(), ApiError> {
        self.usable()?;
        let mut next = self.record.clone();
        if let Some(patch) = &env {
            hutch_protocol::env::check_patch(patch)?;
            hutch_protocol::env::apply(&mut next.env, patch);
            let whole = next
                .env
                .iter()
                .map(|(name, value)| (name.clone(), Some(value.clone())));
            hutch_protocol::env::check_patch(&whole.collect())?;
        }
        next.sleep_after = sleep_after.unwrap_or(next.sleep_after);
        next.keep_alive = keep_alive.unwrap_or(next.keep_alive);
        let changes_env = env.is_some();
        self.commit(
            next,
            vec![SandboxEvent::Configured {
                env,
                sleep_after,
                keep_alive,
            }],
        )
        .await?;
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        // A new idle time counts from now.
        if sleep_after.is_some() || keep_alive.is_some() {
            self.gate.touch();
        }
        running.next_sample = Instant::now();
        if changes_env {
            let applied = running
                .incarnation
                .machine
                .configure(self.record.env.clone());
            if !matches!(
                timeout(self.settings.control_deadline, applied).await,
                Ok(Ok(()))
            ) {
                tracing::warn!("the running machine did not take its new environment");
            }
        }
        Ok(())
    }
}
