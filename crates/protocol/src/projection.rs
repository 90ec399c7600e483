//! What a sandbox's event stream folds into.

use serde::{Deserialize, Serialize};

use crate::event::SandboxEvent;
use crate::{BackupId, EnvMap, InstanceType};

/// Where a sandbox is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Born, never started.
    Created,
    /// Its machine runs.
    Running,
    /// Asleep, or ended by itself.
    Stopped,
    /// Gone for good; the name is retired.
    Destroyed,
}

/// The small state that readers of a sandbox's stream share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Projection {
    /// The status; none before `sandbox/created`.
    pub status: Option<Status>,
    /// Whether the machine runs.
    pub running: bool,
    /// The size it was born with.
    pub instance_type: Option<InstanceType>,
    /// The newest good snapshot.
    pub last_backup_id: Option<BackupId>,
    /// The durable environment.
    pub env: EnvMap,
    /// Whether the last restore failed and nothing cleared that since.
    pub degraded: bool,
}

impl Projection {
    /// Folds one event. `Destroyed` is final: late events change nothing.
    pub fn fold(&mut self, event: &SandboxEvent) {
        let destroyed = self.status == Some(Status::Destroyed);
        match event {
            SandboxEvent::Created { config } if self.instance_type.is_none() => {
                self.instance_type = Some(config.instance_type);
                self.running = false;
                self.status = Some(Status::Created);
            }
            SandboxEvent::Started {} if !destroyed => {
                self.running = true;
                self.status = Some(Status::Running);
            }
            SandboxEvent::Stopped {} if !destroyed => {
                self.running = false;
                self.status = Some(Status::Stopped);
            }
            SandboxEvent::Destroyed {} => {
                self.running = false;
                self.status = Some(Status::Destroyed);
            }
            SandboxEvent::BackupCreated { backup_id } => self.last_backup_id = Some(*backup_id),
            SandboxEvent::Configured {
                env: Some(patch), ..
            } => crate::env::apply(&mut self.env, patch),
            SandboxEvent::RestoreFailed { .. } => self.degraded = true,
            // An expired workspace cannot be restored by anybody any more.
            SandboxEvent::WorkspaceRestored { .. }
            | SandboxEvent::WorkspaceDiscarded { .. }
            | SandboxEvent::WorkspaceExpired { .. } => self.degraded = false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::BirthConfig;

    fn fold(events: &[SandboxEvent]) -> Projection {
        let mut state = Projection::default();
        for event in events {
            state.fold(event);
        }
        state
    }

    fn created() -> SandboxEvent {
        let config = BirthConfig {
            instance_type: InstanceType::Lite,
        };
        SandboxEvent::Created { config }
    }

    #[test]
    fn a_backup_outlives_the_next_start() {
        let backup_id = BackupId::random();
        let state = fold(&[
            created(),
            SandboxEvent::Started {},
            SandboxEvent::BackupCreated { backup_id },
            SandboxEvent::Stopped {},
        ]);
        assert_eq!(state.status, Some(Status::Stopped));
        assert!(!state.running);
        assert_eq!(state.last_backup_id, Some(backup_id));
    }

    #[test]
    fn a_late_stop_does_not_revive_the_destroyed() {
        let state = fold(&[
            created(),
            SandboxEvent::Destroyed {},
            SandboxEvent::Stopped {},
            SandboxEvent::Started {},
        ]);
        assert_eq!(state.status, Some(Status::Destroyed));
        assert!(!state.running);
    }

    #[test]
    fn a_failed_restore_degrades_until_cleared() {
        let backup_id = BackupId::random();
        let failed = SandboxEvent::RestoreFailed {
            backup_id,
            error: "x".into(),
        };
        assert!(fold(&[created(), failed.clone()]).degraded);
        for cleared in [
            SandboxEvent::WorkspaceRestored { backup_id },
            SandboxEvent::WorkspaceExpired { backup_id },
            SandboxEvent::WorkspaceDiscarded { backup_id: None },
        ] {
            assert!(!fold(&[created(), failed.clone(), cleared]).degraded);
        }
    }
}
