//! Following a stream.

use std::sync::Arc;

use hutch_protocol::{ProjectId, StreamPath};
use serde::Serialize;

use crate::error::StoreError;
use crate::event::{Event, StreamKey};
use crate::hub::{Hub, Listener};
use crate::limits;
use crate::query::{self, EventQuery, EventTypes, Order};
use crate::readers::Readers;

/// What to follow.
#[derive(Clone, Debug)]
pub struct Subscribe {
    /// The stream; it need not exist yet.
    pub stream: StreamKey,
    /// Only events above this offset. 0 replays the whole stream.
    pub after_offset: u64,
    /// Only events of these types.
    pub event_types: EventTypes,
    /// How many events a batch has at most, from 1 to 100.
    pub batch: usize,
}

impl Subscribe {
    /// All events of a project's stream, from its beginning.
    #[must_use]
    pub fn new(project: &ProjectId, path: &StreamPath) -> Self {
        Self {
            stream: StreamKey::new(project, path),
            after_offset: 0,
            event_types: EventTypes::All,
            batch: limits::EVENTS_PER_BATCH,
        }
    }

    /// The same, from after an offset.
    #[must_use]
    pub const fn after(mut self, offset: u64) -> Self {
        self.after_offset = offset;
        self
    }

    /// The same, for some types alone.
    #[must_use]
    pub fn types(mut self, event_types: EventTypes) -> Self {
        self.event_types = event_types;
        self
    }

    pub(crate) const fn one(mut self) -> Self {
        self.batch = 1;
        self
    }
}

/// Some events of a followed stream, in order.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// The project; none for a stream of the deployment.
    pub project_id: Option<ProjectId>,
    /// The stream.
    pub path: StreamPath,
    /// At least one event.
    pub events: Vec<Event>,
    /// This batch covers the offsets above this one…
    pub scanned_after_offset: u64,
    /// …up to this one. What the filter selects of them is in `events`. The next
    /// batch goes on from here, and so may a later subscription.
    pub scanned_through_offset: u64,
    /// The highest offset of the stream when it was read. Once
    /// `scanned_through_offset` has reached it, the subscriber is up to date.
    pub stream_max_offset: u64,
}

/// A followed stream. Dropping it ends everything it used.
#[derive(Debug)]
pub struct Subscription {
    stream: StreamKey,
    query: EventQuery,
    delivered: u64,
    readers: Arc<Readers>,
    listener: Listener,
}

impl Subscription {
    pub(crate) fn open(
        request: Subscribe,
        readers: Arc<Readers>,
        hub: &Arc<Hub>,
    ) -> Result<Self, StoreError> {
        let mut query = EventQuery {
            after_offset: request.after_offset,
            before_offset: None,
            event_types: request.event_types,
            limit: request.batch.clamp(1, limits::EVENTS_PER_BATCH),
            order: Order::Ascending,
            max_bytes: Some(limits::BATCH_BYTES),
        };
        query.check()?;
        Ok(Self {
            listener: hub.listen(&request.stream)?,
            stream: request.stream,
            delivered: query.after_offset,
            query,
            readers,
        })
    }

    /// The offset up to which everything was delivered.
    #[must_use]
    pub const fn cursor(&self) -> u64 {
        self.delivered
    }

    /// The next events; waits until there are some. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// [`StoreError::Closed`] when the store is closed; database errors.
    pub async fn next(&mut self) -> Result<Batch, StoreError> {
        loop {
            // Seen first, read after: a commit between the two wakes us again
            // for nothing, while the other order would miss it.
            self.listener.mark_seen();
            let (stream, query) = (self.stream.clone(), self.query.clone());
            let read = move |connection: &rusqlite::Connection| {
                query::events::page(connection, &stream, &query)
            };
            let page = self.readers.read(read).await?;
            let through = match page.events.last() {
                Some(last) if page.more => last.offset,
                _ => page.stream_max_offset.max(self.query.after_offset),
            };
            self.query.after_offset = through;
            if !page.events.is_empty() {
                let after = std::mem::replace(&mut self.delivered, through);
                return Ok(Batch {
                    project_id: self.stream.project.clone(),
                    path: self.stream.path.clone(),
                    events: page.events,
                    scanned_after_offset: after,
                    scanned_through_offset: through,
                    stream_max_offset: page.stream_max_offset,
                });
            }
            self.listener.changed().await?;
        }
    }
}
