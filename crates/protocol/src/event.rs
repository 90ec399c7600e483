//! The events of projects and sandboxes: types and payloads.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{BackupId, CreateInput, EnvPatch, InstanceType, SandboxPath, SleepAfter};

/// Prefixes of the types that only the server appends.
pub const SERVER_PREFIXES: [&str; 5] = ["sandbox/", "stream/", "project/", "secret/", "egress/"];

/// Whether only the server may append events of this type.
#[must_use]
pub fn is_server_only(event_type: &str) -> bool {
    SERVER_PREFIXES
        .iter()
        .any(|prefix| event_type.starts_with(prefix))
}

/// The fixed part of a sandbox's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BirthConfig {
    /// The size.
    pub instance_type: InstanceType,
}

/// What happens to a sandbox, as its own stream records it. `create-requested`
/// alone goes to the project's `/sandboxes` stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload")]
#[allow(missing_docs, reason = "the payload fields are named as they travel")]
pub enum SandboxEvent {
    /// The claim of a name.
    #[serde(rename = "sandbox/create-requested")]
    CreateRequested(CreateRequested),
    /// Birth; always at offset 1.
    #[serde(rename = "sandbox/created")]
    Created { config: BirthConfig },
    /// A change of configuration; `env` is the delta.
    #[serde(rename = "sandbox/configured", rename_all = "camelCase")]
    Configured {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<EnvPatch>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sleep_after: Option<SleepAfter>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep_alive: Option<bool>,
    },
    /// Somebody asked for a start.
    #[serde(rename = "sandbox/start-requested")]
    StartRequested {},
    /// The machine runs, whoever woke it.
    #[serde(rename = "sandbox/started")]
    Started {},
    /// Somebody asked for sleep.
    #[serde(rename = "sandbox/sleep-requested")]
    SleepRequested {},
    /// The machine is gone: sleep, idle time or its own end.
    #[serde(rename = "sandbox/stopped")]
    Stopped {},
    /// Somebody asked for the end.
    #[serde(rename = "sandbox/destroy-requested")]
    DestroyRequested {},
    /// Gone for good.
    #[serde(rename = "sandbox/destroyed")]
    Destroyed {},
    /// The workspace holds what the snapshot held.
    #[serde(rename = "sandbox/workspace-restored", rename_all = "camelCase")]
    WorkspaceRestored { backup_id: BackupId },
    /// A snapshot is stored and verified.
    #[serde(rename = "sandbox/backup-created", rename_all = "camelCase")]
    BackupCreated { backup_id: BackupId },
    /// A snapshot could not be made; the handle stays on the last good one.
    #[serde(rename = "sandbox/backup-failed")]
    BackupFailed { error: String },
    /// A restore failed; the sandbox is degraded.
    #[serde(rename = "sandbox/restore-failed", rename_all = "camelCase")]
    RestoreFailed { backup_id: BackupId, error: String },
    /// The owner gave up an unrestorable workspace.
    #[serde(rename = "sandbox/workspace-discarded", rename_all = "camelCase")]
    WorkspaceDiscarded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backup_id: Option<BackupId>,
    },
    /// The snapshot was too old; the workspace starts empty.
    #[serde(rename = "sandbox/workspace-expired", rename_all = "camelCase")]
    WorkspaceExpired { backup_id: BackupId },
}

/// The payload of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateRequested {
    /// The claimed path.
    pub path: SandboxPath,
    /// What was asked for.
    #[serde(flatten)]
    pub input: CreateInput,
}

impl SandboxEvent {
    /// The type and the payload, as an event stream stores them.
    ///
    /// # Errors
    /// Never for these types; the signature is that of JSON encoding.
    pub fn to_parts(&self) -> Result<(String, Map<String, Value>), serde_json::Error> {
        #[derive(Deserialize)]
        struct Parts {
            r#type: String,
            #[serde(default)]
            payload: Map<String, Value>,
        }
        let parts: Parts = serde_json::from_value(serde_json::to_value(self)?)?;
        Ok((parts.r#type, parts.payload))
    }

    /// Reads a stored event; none if the type is not a sandbox's or the payload
    /// is of another version.
    #[must_use]
    pub fn from_parts(event_type: &str, payload: &Map<String, Value>) -> Option<Self> {
        let whole = serde_json::json!({ "type": event_type, "payload": payload });
        serde_json::from_value(whole).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn events_have_the_types_and_payloads_that_readers_expect() {
        let backup_id = BackupId::random();
        let (name, payload) = SandboxEvent::BackupCreated { backup_id }
            .to_parts()
            .unwrap();
        assert_eq!(name, "sandbox/backup-created");
        assert_eq!(
            Value::Object(payload),
            json!({"backupId": backup_id.to_string()})
        );

        let claim = CreateRequested {
            path: "/sandboxes/a".parse().unwrap(),
            input: CreateInput::from_json(&json!({"instanceType": "lite", "sleepAfter": "30s"}))
                .unwrap(),
        };
        let event = SandboxEvent::CreateRequested(claim);
        let (name, payload) = event.to_parts().unwrap();
        assert_eq!(name, "sandbox/create-requested");
        let expected = json!({"path": "/sandboxes/a", "instanceType": "lite", "sleepAfter": "30s"});
        assert_eq!(Value::Object(payload.clone()), expected);
        assert_eq!(SandboxEvent::from_parts(&name, &payload), Some(event));

        let (name, payload) = SandboxEvent::Started {}.to_parts().unwrap();
        assert_eq!((name.as_str(), payload.len()), ("sandbox/started", 0));
    }

    #[test]
    fn the_servers_prefixes_are_reserved() {
        assert!(is_server_only("sandbox/started"));
        assert!(!is_server_only("notes/added"));
        assert!(!is_server_only("sandboxes/x"));
    }
}
