//! Sleep and start as one step.

use hutch_failpoint::failpoint;
use hutch_protocol::event::SandboxEvent;
use hutch_protocol::{ApiError, ErrorCode};

use super::{Actor, injected};

impl Actor {
    /// Nothing comes between the two halves: the actor does one step at a
    /// time. A snapshot that fails does not keep the sandbox down.
    pub(super) async fn restart(&mut self) -> Result<(), ApiError> {
        let slept = self.sleep_for("restart").await;
        let failure = match slept {
            Err(error) if self.running.is_some() || error.code != ErrorCode::SnapshotFailed => {
                return Err(error);
            }
            slept => slept.err(),
        };
        failpoint!("restart.slept").map_err(injected)?;
        let offset = self.note(SandboxEvent::StartRequested {}).await;
        self.noted(offset);
        self.wake().await?;
        match failure {
            None => Ok(()),
            Some(error) => {
                let path = &self.record.key.path;
                let cause = error.details.get("cause").and_then(|cause| cause.as_str());
                let message = format!(
                    "sandbox {path} was restarted on the disk it had, but the snapshot before failed: {}",
                    cause.unwrap_or("no reason is known")
                );
                Err(ApiError { message, ..error }.with("running", true))
            }
        }
    }
}
