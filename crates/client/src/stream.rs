//! Event streams: reading and following.

use crate::{ClientError, client::Link, decode};
use capnweb::{Stub, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Batches that wait for a slow follower; more make the server wait.
const BATCHES: usize = 16;

/// An event stream, addressed.
#[derive(Debug, Clone)]
pub struct EventStream {
    link: Arc<Link>,
    stream: Stub,
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
    /// Only these types; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<String>,
    /// At most so many, 1 to 500; the server's default is 500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl EventStream {
    pub(crate) fn new(link: Arc<Link>, stream: Stub) -> Self {
        Self { link, stream }
    }

    /// One page of events, oldest first.
    pub async fn get_events(&self, query: &EventQuery) -> Result<Vec<Event>, ClientError> {
        let answer = self
            .link
            .call(&self.stream, "getEvents", vec![argument(query)?])
            .await?;
        decode::typed("getEvents", &answer)
    }

    /// Follows the stream from `query.after_offset` on.
    pub async fn subscribe(&self, query: &EventQuery) -> Result<Tail, ClientError> {
        let (sender, batches) = mpsc::channel(BATCHES);
        let receive = Stub::function(move |mut args: Vec<Value>| {
            let sender = sender.clone();
            async move {
                let batch = if args.is_empty() {
                    Value::Undefined
                } else {
                    args.swap_remove(0)
                };
                // A follower that is gone needs no more; its subscription ends with it.
                let _ = sender.send(batch).await;
                Ok(Value::Undefined)
            }
        });
        let mut options = capnweb::Object::new();
        options.insert("processEventBatch", Value::Stub(receive));
        options.insert(
            "replayAfterOffset",
            Value::Number(query.after_offset as f64),
        );
        if !query.event_types.is_empty() {
            let types = query.event_types.iter().cloned().map(Value::String);
            options.insert("eventTypes", Value::Array(types.collect()));
        }
        let subscription = self
            .link
            .call(&self.stream, "subscribe", vec![Value::Object(options)])
            .await?;
        Ok(Tail {
            link: self.link.clone(),
            batches,
            _subscription: subscription,
        })
    }
}

/// A followed stream. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Tail {
    link: Arc<Link>,
    batches: mpsc::Receiver<Value>,
    _subscription: Value,
}

#[derive(Deserialize)]
struct Batch {
    events: Vec<Event>,
}

impl Tail {
    /// The next events, at least one.
    pub async fn next(&mut self) -> Result<Vec<Event>, ClientError> {
        loop {
            let batch = tokio::select! {
                batch = self.batches.recv() => batch,
                reason = self.link.closed() => return Err(reason),
            };
            let Some(batch) = batch else {
                return Err(ClientError::Interrupted {
                    reason: "the server ended the subscription".to_owned(),
                    admitted: Some(true),
                });
            };
            let Batch { events } = decode::typed("subscribe", &batch)?;
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }
}

fn argument(query: &EventQuery) -> Result<Value, ClientError> {
    Value::serialize(query).map_err(|error| ClientError::Shape {
        call: "getEvents".to_owned(),
        reason: json!(error.to_string()).to_string(),
    })
}
