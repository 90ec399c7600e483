//! Durable event streams and versioned records, in one SQLite database per
//! data directory.
//!
//! One thread writes. It commits all waiting transactions together, so that
//! many callers share one fsync, and answers only after it. Reads use their own
//! read-only connections on blocking threads. Live subscribers are only
//! notified; they read from the database at their own pace.
//!
//! ```no_run
//! # async fn example(project: hutch_protocol::ProjectId) -> Result<(), Box<dyn std::error::Error>> {
//! use hutch_streams::{Append, NewEvent, Store, Subscribe, Transaction};
//!
//! let store = Store::open("/var/lib/hutch".as_ref())?;
//! let path: hutch_protocol::StreamPath = "/notes".parse()?;
//! let event = NewEvent::new("note/added", serde_json::Map::new()).key("note-1");
//! store.commit(Transaction::new().append(Append::one(&project, &path, event))).await?;
//! let mut tail = store.subscribe(Subscribe::new(&project, &path))?;
//! let batch = tail.next().await?;
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod api_error;
mod clock;
mod error;
mod event;
mod hub;
mod integer;
pub mod limits;
mod lock;
mod meter;
mod query;
mod readers;
mod record;
mod schema;
mod store;
mod subscription;
mod transaction;
mod validate;
mod writer;

pub use clock::Clock;
pub use error::{OpenError, StoreError};
pub use event::{Committed, Event, NewEvent, StreamKey};
pub use meter::{COMMIT_BUCKETS_MS, StoreMetrics};
pub use query::{
    EventPage, EventQuery, EventRef, EventTypes, Order, StreamHead, StreamInfo, StreamListing,
};
pub use record::{Record, RecordId, Scope};
pub use store::{DATABASE_FILE, Options, Store};
pub use subscription::{Batch, Subscribe, Subscription};
pub use transaction::{Append, Expect, Outcome, RecordDelete, RecordWrite, Transaction};
