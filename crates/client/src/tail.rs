//! Following a stream.

use crate::{
    ClientError, Event, EventQuery, decode,
    link::{Remote, Wire},
};
use capnweb::{Stub, Value};
use serde::Deserialize;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Batches that wait for a slow follower; more make the server wait.
const BATCHES: usize = 16;

/// A followed stream. Dropping it ends the subscription. It does not connect
/// again: after an error subscribe after the last offset that was seen.
#[derive(Debug)]
pub struct Tail {
    wire: Arc<Wire>,
    batches: mpsc::Receiver<Value>,
    seen: u64,
    _subscription: Value,
}

#[derive(Deserialize)]
struct Batch {
    events: Vec<Event>,
}

impl Tail {
    pub(crate) async fn start(stream: &Remote, query: &EventQuery) -> Result<Self, ClientError> {
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
        let (wire, stub) = stream.find().await?;
        let subscription = stub.call("subscribe", vec![Value::Object(options)]).await?;
        Ok(Self {
            wire,
            batches,
            seen: query.after_offset,
            _subscription: subscription,
        })
    }

    /// The next events, at least one.
    ///
    /// # Errors
    /// [`ClientError::Interrupted`] when the connection or the subscription ended.
    pub async fn next(&mut self) -> Result<Vec<Event>, ClientError> {
        loop {
            let batch = tokio::select! {
                biased;
                batch = self.batches.recv() => batch,
                reason = self.wire.closed() => return Err(reason),
            };
            let Some(batch) = batch else {
                return Err(ClientError::Interrupted {
                    reason: "the server ended the subscription".to_owned(),
                    admitted: Some(true),
                });
            };
            let Batch { mut events } = decode::typed("subscribe", &batch)?;
            events.retain(|event| event.offset > self.seen);
            if let Some(last) = events.last() {
                self.seen = last.offset;
                return Ok(events);
            }
        }
    }

    /// Offset of the last event that was given.
    pub fn seen(&self) -> u64 {
        self.seen
    }
}
