//! The one thread that writes.

mod append;
mod apply;
mod group;
mod records;

use std::sync::Arc;
use std::thread;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use crate::error::StoreError;
use crate::hub::Hub;
use crate::lock::DirectoryLock;
use crate::store::Options;
use crate::transaction::{Outcome, Transaction};
use group::Group;

/// A transaction on its way, and who waits for it.
struct Job {
    transaction: Transaction,
    answer: oneshot::Sender<Result<Outcome, StoreError>>,
    /// Its share of the queue's bytes, given back when it is answered.
    _room: OwnedSemaphorePermit,
}

enum Message {
    Commit(Job),
    Close,
}

/// The way to the writer's thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Message>,
    room: Arc<Semaphore>,
    room_kib: u32,
    ended: watch::Receiver<()>,
    broken: watch::Receiver<Option<StoreError>>,
}

impl Writer {
    pub(crate) fn start(
        connection: Connection,
        lock: DirectoryLock,
        hub: Arc<Hub>,
        options: &Options,
    ) -> std::io::Result<Self> {
        let (queue, messages) = mpsc::channel(options.queue.max(1));
        let (alive, ended) = watch::channel(());
        let room_kib = u32::try_from(options.queue_bytes / 1024)
            .unwrap_or(u32::MAX)
            .max(1);
        let room = Arc::new(Semaphore::new(room_kib as usize));
        let group = Group::new(connection, Arc::clone(&hub), options.clock.clone());
        let broken = group.broken();
        let most = options.group.max(1);
        thread::Builder::new()
            .name("hutch-writer".into())
            .spawn(move || {
                // Dropped last to first, also in a panic: the database is
                // closed, then the lock freed, then subscribers and `close` told.
                let _alive = alive;
                let _end = EndOfHub(hub);
                let _lock = lock;
                run(group, messages, most);
            })?;
        Ok(Self {
            queue,
            room,
            room_kib,
            ended,
            broken,
        })
    }

    /// Waits for room, then for the answer.
    pub(crate) async fn commit(
        &self,
        transaction: Transaction,
        bytes: usize,
    ) -> Result<Outcome, StoreError> {
        // Whatever its size, a transaction fits when it is alone.
        let kib = u32::try_from(bytes / 1024 + 1)
            .unwrap_or(u32::MAX)
            .min(self.room_kib);
        let room = Arc::clone(&self.room)
            .acquire_many_owned(kib)
            .await
            .map_err(|_| StoreError::Closed)?;
        let (answer, answered) = oneshot::channel();
        let job = Job {
            transaction,
            answer,
            _room: room,
        };
        self.queue
            .send(Message::Commit(job))
            .await
            .map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// Whether commits can succeed, or what stops them all.
    pub(crate) fn state(&self) -> Result<(), StoreError> {
        // An error means that the thread, which holds the other end, is gone.
        if self.broken.has_changed().is_err() {
            return Err(StoreError::Closed);
        }
        self.broken.borrow().clone().map_or(Ok(()), Err)
    }

    pub(crate) async fn close(&self) {
        // An error means that the thread has ended already.
        let _ = self.queue.send(Message::Close).await;
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }
}

struct EndOfHub(Arc<Hub>);

impl Drop for EndOfHub {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Takes what waits, commits it together, until nobody can send any more.
fn run(mut group: Group, mut messages: mpsc::Receiver<Message>, most: usize) {
    while let Some(first) = messages.blocking_recv() {
        let mut jobs = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Commit(job) => jobs.push(job),
                // What is queued already is still received and done.
                Message::Close => messages.close(),
            }
            next = if jobs.len() < most {
                messages.try_recv().ok()
            } else {
                None
            };
        }
        group.commit(jobs);
    }
}
