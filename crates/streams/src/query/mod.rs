//! Reads: what they ask for and what they answer.

pub(crate) mod events;
pub(crate) mod records;
pub(crate) mod streams;
mod wire;

use hutch_protocol::{StreamPath, Timestamp};
use serde::Serialize;

use crate::error::StoreError;
use crate::event::Event;
use crate::{limits, validate};

/// Which single event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventRef {
    /// The one at an offset.
    Offset(u64),
    /// The one that was appended under a key.
    Key(String),
}

/// Which types of event. As JSON a list of types, or `"*"` for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventTypes {
    /// All of them.
    #[default]
    All,
    /// These alone; none of them when empty.
    Only(Vec<String>),
}

impl EventTypes {
    /// From the list that clients send: absent, or with a `*` in it, means all.
    #[must_use]
    pub fn from_list(list: Option<Vec<String>>) -> Self {
        match list {
            None => Self::All,
            Some(types) if types.iter().any(|name| name == "*") => Self::All,
            Some(types) => Self::Only(types),
        }
    }

    /// Checks the names and drops those that come twice.
    pub(crate) fn normalise(&mut self) -> Result<(), StoreError> {
        if let Self::Only(types) = self {
            types.sort_unstable();
            types.dedup();
            validate::at_most(
                "a filter",
                "event types",
                types.len(),
                limits::TYPES_PER_FILTER,
            )?;
            types
                .iter()
                .try_for_each(|name| validate::event_type(name))?;
        }
        Ok(())
    }
}

/// The order of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Oldest first.
    #[default]
    Ascending,
    /// Newest first.
    Descending,
}

/// Which events of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventQuery {
    /// Only events above this offset.
    pub after_offset: u64,
    /// Only events below this offset.
    pub before_offset: Option<u64>,
    /// Only events of these types.
    pub event_types: EventTypes,
    /// How many at most, from 1 to 500.
    pub limit: usize,
    /// Which end comes first.
    pub order: Order,
    /// Ends the read once payloads and metadata have this many bytes together,
    /// though never before the first event. None: `limit` alone ends it.
    pub max_bytes: Option<usize>,
}

impl Default for EventQuery {
    /// The oldest 500 events.
    fn default() -> Self {
        Self {
            after_offset: 0,
            before_offset: None,
            event_types: EventTypes::All,
            limit: limits::EVENTS_PER_READ,
            order: Order::Ascending,
            max_bytes: None,
        }
    }
}

impl EventQuery {
    /// Checks the query and normalises its filter.
    pub(crate) fn check(&mut self) -> Result<(), StoreError> {
        if self.limit == 0 {
            return Err(StoreError::Invalid(
                "getEvents limit must be a positive integer.".into(),
            ));
        }
        if self.limit > limits::EVENTS_PER_READ {
            return Err(StoreError::Invalid(
                "getEvents limit must be at most 500.".into(),
            ));
        }
        self.event_types.normalise()
    }
}

/// What a read of events found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// The events, in the order asked for.
    pub events: Vec<Event>,
    /// The highest offset of the stream, 0 when it does not exist.
    pub stream_max_offset: u64,
    /// Whether the read ended at its limit or byte limit, so that more events
    /// may follow.
    pub more: bool,
}

/// A stream's age and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamHead {
    /// When its first event was appended.
    pub created_at: Timestamp,
    /// The offset of its newest event.
    pub max_offset: u64,
}

/// One stream of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamInfo {
    /// Its canonical path.
    pub path: StreamPath,
    /// When its first event was appended.
    pub created_at: Timestamp,
    /// The offset of its newest event.
    pub max_offset: u64,
}

/// Which streams of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamListing {
    /// What the canonical path begins with, such as `/sandboxes/`; empty for
    /// all.
    pub prefix: String,
    /// Only paths after this one, for the next page.
    pub after: Option<StreamPath>,
    /// How many at most, from 1 to 1000.
    pub limit: usize,
}

impl StreamListing {
    /// The first 1000 streams under a prefix.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            after: None,
            limit: limits::STREAMS_PER_READ,
        }
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.limit == 0 || self.limit > limits::STREAMS_PER_READ {
            return Err(StoreError::Invalid(format!(
                "the limit of a stream listing is {}, use 1 to {}",
                self.limit,
                limits::STREAMS_PER_READ
            )));
        }
        Ok(())
    }
}
