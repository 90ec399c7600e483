//! The handle that everything goes through.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hutch_protocol::ProjectId;

use crate::clock::Clock;
use crate::error::{OpenError, StoreError};
use crate::event::{Event, StreamKey};
use crate::hub::Hub;
use crate::lock::DirectoryLock;
use crate::meter::{Meter, StoreMetrics};
use crate::query::{self, EventPage, EventQuery, EventRef, StreamHead, StreamInfo, StreamListing};
use crate::readers::Readers;
use crate::record::{Record, RecordId, Scope};
use crate::subscription::{Subscribe, Subscription};
use crate::transaction::{Outcome, Transaction};
use crate::writer::Writer;
use crate::{schema, validate};

/// The database's name within the data directory.
pub const DATABASE_FILE: &str = "hutch.db";

/// Settings of a store. The defaults suit a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Transactions that may wait for the writer; more callers wait to enter.
    pub queue: usize,
    /// Bytes of JSON that may wait for the writer.
    pub queue_bytes: usize,
    /// Transactions that share one fsync at most.
    pub group: usize,
    /// Connections that read.
    pub readers: usize,
    /// Live subscriptions that may be open.
    pub subscriptions: usize,
    /// Where the time of events comes from.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queue: 1024,
            queue_bytes: 32 * 1024 * 1024,
            group: 128,
            readers: 4,
            subscriptions: 16 * 1024,
            clock: Clock::host(),
        }
    }
}

/// The event streams and records of one data directory. Clones share it.
///
/// When the last clone is gone, the writer finishes what it has accepted and
/// ends; [`Store::close`] waits for that.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    writer: Writer,
    readers: Arc<Readers>,
    hub: Arc<Hub>,
    meter: Meter,
}

impl Store {
    /// Opens the database in `directory`, making it (mode 600) or bringing it
    /// to the current schema when needed. Blocks; call it before serving.
    ///
    /// # Errors
    /// See [`OpenError`]. A newer schema is refused and left untouched.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        Self::open_with(directory, Options::default())
    }

    /// As [`Store::open`], with settings.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_with(directory: &Path, options: Options) -> Result<Self, OpenError> {
        let path = directory.join(DATABASE_FILE);
        let lock = DirectoryLock::take(directory, &path)?;
        let connection = schema::open(&path)?;
        let readers = Arc::new(Readers::open(&path, options.readers)?);
        let hub = Arc::new(Hub::new(options.subscriptions));
        let writer =
            Writer::start(connection, lock, Arc::clone(&hub), &options).map_err(|source| {
                OpenError::Io {
                    path: path.clone(),
                    source,
                }
            })?;
        Ok(Self {
            inner: Arc::new(Inner {
                path,
                writer,
                readers,
                hub,
                meter: Meter::default(),
            }),
        })
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Commits a transaction whole, durably, or changes nothing. Waits while
    /// the writer's queue is full.
    ///
    /// Dropping the future before it answers leaves open whether the
    /// transaction is committed. Give events idempotency keys and try again.
    ///
    /// # Errors
    /// [`StoreError`], of the first event or record that fails.
    pub async fn commit(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        let bytes = validate::transaction(&transaction)?;
        let begun = Instant::now();
        let outcome = self.inner.writer.commit(transaction, bytes).await;
        self.inner.meter.committed(&outcome, begun.elapsed());
        outcome
    }

    /// Whether the writer still takes transactions. Does not wait or write.
    ///
    /// # Errors
    /// [`StoreError::Closed`], or the failure of the disk after which nothing
    /// is written any more.
    pub fn writable(&self) -> Result<(), StoreError> {
        self.inner.writer.state()
    }

    /// What it has done since it was opened.
    #[must_use]
    pub fn metrics(&self) -> StoreMetrics {
        self.inner.meter.read()
    }

    /// One event by offset or idempotency key; none when there is no such
    /// event or stream.
    ///
    /// # Errors
    /// [`StoreError::Database`] and its like.
    pub async fn get_event(
        &self,
        stream: &StreamKey,
        which: EventRef,
    ) -> Result<Option<Event>, StoreError> {
        let stream = stream.clone();
        self.inner
            .readers
            .read(move |connection| query::events::one(connection, &stream, &which))
            .await
    }

    /// The events of a stream that a query selects; none when there is no such
    /// stream.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a limit outside 1–500, and database errors.
    pub async fn get_events(
        &self,
        stream: &StreamKey,
        query: EventQuery,
    ) -> Result<Vec<Event>, StoreError> {
        Ok(self.get_event_page(stream, query).await?.events)
    }

    /// As [`Store::get_events`], and how far the read came.
    ///
    /// # Errors
    /// As [`Store::get_events`].
    pub async fn get_event_page(
        &self,
        stream: &StreamKey,
        mut query: EventQuery,
    ) -> Result<EventPage, StoreError> {
        query.check()?;
        let stream = stream.clone();
        self.inner
            .readers
            .read(move |connection| query::events::page(connection, &stream, &query))
            .await
    }

    /// When a stream began and its highest offset; none when it does not exist.
    ///
    /// # Errors
    /// Database errors.
    pub async fn head(&self, stream: &StreamKey) -> Result<Option<StreamHead>, StoreError> {
        let stream = stream.clone();
        self.inner
            .readers
            .read(move |connection| query::streams::head(connection, &stream))
            .await
    }

    /// The streams of a project whose path starts with a prefix, by path.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a bad limit, and database errors.
    pub async fn list_streams(
        &self,
        project: Option<&ProjectId>,
        listing: StreamListing,
    ) -> Result<Vec<StreamInfo>, StoreError> {
        listing.check()?;
        let project = project.cloned();
        self.inner
            .readers
            .read(move |connection| query::streams::list(connection, project.as_ref(), &listing))
            .await
    }

    /// One record.
    ///
    /// # Errors
    /// Database errors.
    pub async fn record(&self, id: &RecordId) -> Result<Option<Record>, StoreError> {
        let id = id.clone();
        self.inner
            .readers
            .read(move |connection| query::records::one(connection, &id))
            .await
    }

    /// At most `limit` records of a kind, by project and key, after a given
    /// one.
    ///
    /// # Errors
    /// Database errors.
    pub async fn record_page(
        &self,
        kind: &str,
        scope: Scope<'_>,
        after: Option<&RecordId>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let (kind, after) = (kind.to_owned(), after.cloned());
        let project = scope.project_text();
        self.inner
            .readers
            .read(move |connection| {
                query::records::page(connection, &kind, project.as_deref(), after.as_ref(), limit)
            })
            .await
    }

    /// All records of a kind, by project and key.
    ///
    /// # Errors
    /// Database errors.
    pub async fn records(&self, kind: &str, scope: Scope<'_>) -> Result<Vec<Record>, StoreError> {
        const PAGE: usize = 256;
        let mut all: Vec<Record> = Vec::new();
        loop {
            let after = all.last().map(|record| record.id.clone());
            let page = self.record_page(kind, scope, after.as_ref(), PAGE).await?;
            let full = page.len() == PAGE;
            all.extend(page);
            if !full {
                return Ok(all);
            }
        }
    }

    /// Follows a stream, whether it exists yet or not: first the durable
    /// events after the cursor, then new ones as they are committed. Nothing is
    /// left out, nothing comes twice.
    ///
    /// # Errors
    /// [`StoreError::TooManySubscriptions`], or a malformed filter.
    pub fn subscribe(&self, request: Subscribe) -> Result<Subscription, StoreError> {
        Subscription::open(request, Arc::clone(&self.inner.readers), &self.inner.hub)
    }

    /// The first event after the cursor that the filter selects, durable or to
    /// come.
    ///
    /// # Errors
    /// [`StoreError::WaitTimeout`] after `timeout`; otherwise as
    /// [`Store::subscribe`].
    pub async fn wait_for_event(
        &self,
        request: Subscribe,
        timeout: Duration,
    ) -> Result<Event, StoreError> {
        let late = StoreError::WaitTimeout {
            path: request.stream.path.to_string(),
            after_offset: request.after_offset,
        };
        let mut tail = self.subscribe(request.one())?;
        match tokio::time::timeout(timeout, tail.next()).await {
            Ok(batch) => batch?.events.into_iter().next().ok_or(StoreError::Closed),
            Err(_) => Err(late),
        }
    }

    /// Refuses new transactions, finishes the accepted ones, ends the writer
    /// and every subscription. Safe to call more than once.
    pub async fn close(&self) {
        self.inner.writer.close().await;
    }
}
