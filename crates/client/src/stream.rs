//! Event streams: reading and following.

use crate::{ClientError, decode, link::Remote, tail::Tail};
use capnweb::Value;
use serde::{Deserialize, Serialize};

/// An event stream, addressed.
#[derive(Debug, Clone)]
pub struct EventStream {
    stream: Remote,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Place in the stream, from 1.
    pub offset: u64,
    /// Type, such as `sandbox/started`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// What the type says of it.
    #[serde(default)]
    pub payload: serde_json::Value,
    /// When it was appended, RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// Whatever else the server tells.
    #[serde(flatten)]
    pub more: serde_json::Map<String, serde_json::Value>,
}

/// Which events to read.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventQuery {
    /// Only events after this offset.
    pub after_offset: u64,
    /// Only events before this offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_offset: Option<u64>,
    /// Only these types; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<String>,
    /// At most so many, 1 to 500; the server's default is 500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Newest first.
    #[serde(
        rename = "order",
        skip_serializing_if = "std::ops::Not::not",
        serialize_with = "descending"
    )]
    pub newest_first: bool,
}

fn descending<S: serde::Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("desc")
}

/// An event to append.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEvent {
    /// Type, such as `notes/added`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// What is known about it; an object of at most 64 KiB.
    #[serde(default)]
    pub payload: serde_json::Map<String, serde_json::Value>,
    /// Names the event for ever within its stream: a second append under the same
    /// key appends nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The offset that the event must get.
    #[serde(default, rename = "offset", skip_serializing_if = "Option::is_none")]
    pub expected_offset: Option<u64>,
}

/// Where a stream ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamHead {
    /// When the first event was appended, RFC 3339.
    pub created_at: String,
    /// Offset of the newest event.
    pub max_offset: u64,
}

impl EventStream {
    pub(crate) fn new(stream: Remote) -> Self {
        Self { stream }
    }

    /// One page of events, oldest first unless asked otherwise. A stream that has
    /// no event is empty, not an error.
    ///
    /// # Errors
    /// EVENTS_TRIMMED for what is no longer kept, VALIDATION_FAILED for a limit
    /// outside 1 to 500.
    pub async fn get_events(&self, query: &EventQuery) -> Result<Vec<Event>, ClientError> {
        let argument = Value::serialize(query).map_err(|error| ClientError::Shape {
            call: "getEvents".to_owned(),
            reason: error.to_string(),
        })?;
        let answer = self.stream.call("getEvents", vec![argument]).await?;
        decode::typed("getEvents", &answer)
    }

    /// The newest offset; `None` for a stream without events.
    ///
    /// # Errors
    /// PROJECT_NOT_FOUND, INVALID_PATH.
    pub async fn head(&self) -> Result<Option<StreamHead>, ClientError> {
        let answer = self.stream.call("head", vec![]).await?;
        decode::typed("head", &answer)
    }

    /// Appends events, all or none, and answers them as committed. An event whose
    /// key the stream has already is answered as it was the first time.
    ///
    /// # Errors
    /// FORBIDDEN for a path and FORBIDDEN_EVENT_TYPE for a type that only the
    /// server appends; what it says of an expected offset that is taken.
    pub async fn append(&self, events: &[NewEvent]) -> Result<Vec<Event>, ClientError> {
        let argument = Value::serialize(events).map_err(|error| ClientError::Shape {
            call: "append".to_owned(),
            reason: error.to_string(),
        })?;
        let answer = self.stream.call("append", vec![argument]).await?;
        decode::typed("append", &answer)
    }

    /// Follows the stream: first what comes after `query.after_offset`, then what
    /// is appended, with no gap between and nothing twice. Of the query only
    /// `after_offset` and `event_types` count.
    ///
    /// # Errors
    /// PROJECT_NOT_FOUND, INVALID_PATH.
    pub async fn subscribe(&self, query: &EventQuery) -> Result<Tail, ClientError> {
        Tail::start(&self.stream, query).await
    }
}
