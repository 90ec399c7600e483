//! Events: as a caller offers them and as the log holds them.

use hutch_protocol::{ProjectId, StreamPath, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Which stream: a project, or the whole deployment when there is none, and a
/// path within it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// The project; none for the streams of the deployment itself.
    pub project: Option<ProjectId>,
    /// The canonical path.
    pub path: StreamPath,
}

impl StreamKey {
    /// The stream of a project at a path.
    #[must_use]
    pub fn new(project: &ProjectId, path: &StreamPath) -> Self {
        Self {
            project: Some(project.clone()),
            path: path.clone(),
        }
    }

    /// The project as the database spells it; empty for the deployment.
    pub(crate) fn project_text(&self) -> &str {
        self.project.as_ref().map_or("", ProjectId::as_str)
    }
}

/// An event that a caller wants appended.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEvent {
    /// What happened, such as `sandbox/created`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// What is known about it. Absent means empty.
    #[serde(default)]
    pub payload: Map<String, Value>,
    /// What is known about the append itself.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
    /// Names the event for ever within its stream. A second append under the
    /// same key appends nothing. Space around it is cut when it is read from
    /// JSON, so that whoever checks keys sees what is stored, and refused later.
    #[serde(default, deserialize_with = "trimmed")]
    pub idempotency_key: Option<String>,
    /// The offset that this event must get.
    #[serde(default, rename = "offset")]
    pub expected_offset: Option<u64>,
}

fn trimmed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let key = Option::<String>::deserialize(deserializer)?;
    Ok(key.map(|key| key.trim().to_owned()))
}

impl NewEvent {
    /// An event without key, metadata and expectation.
    #[must_use]
    pub fn new(event_type: impl Into<String>, payload: Map<String, Value>) -> Self {
        Self {
            event_type: event_type.into(),
            payload,
            metadata: None,
            idempotency_key: None,
            expected_offset: None,
        }
    }

    /// The same event under an idempotency key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// The same event with metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// The same event, to be appended only at this offset.
    #[must_use]
    pub const fn expect_offset(mut self, offset: u64) -> Self {
        self.expected_offset = Some(offset);
        self
    }
}

/// An event of the log. Its JSON is `{offset, type, payload, metadata?,
/// idempotencyKey?, createdAt, path}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The place in the stream, from 1, without gaps.
    pub offset: u64,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: String,
    /// What is known about it.
    pub payload: Map<String, Value>,
    /// What is known about the append itself, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The key it was appended under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// When the host's clock said it was appended; never before the event
    /// below it.
    pub created_at: Timestamp,
    /// The stream.
    pub path: StreamPath,
}

/// The answer for one offered event.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// The event of the log.
    pub event: Event,
    /// Whether this append made it. False: its key was there already, and this
    /// is the earlier event.
    pub inserted: bool,
}
