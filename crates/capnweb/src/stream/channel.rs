//! The queue between a producer and a reader.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::{Canceled, reader_gone};
use crate::error::ErrorValue;
use crate::lock::lock;
use crate::meter::Charge;
use crate::remains;
use crate::value::Value;

/// Tells a producer at a peer what became of its write. Dropped without an
/// answer it says that the reader is gone.
pub(crate) struct Ack(Option<AckFn>);

type CancelFn = Box<dyn FnOnce(&Arc<ErrorValue>) + Send>;
type AckFn = Box<dyn FnOnce(Result<(), Arc<ErrorValue>>) + Send>;

impl Ack {
    pub(crate) fn new(answer: impl FnOnce(Result<(), Arc<ErrorValue>>) + Send + 'static) -> Self {
        Self(Some(Box::new(answer)))
    }

    pub(crate) fn answer(mut self, result: Result<(), Arc<ErrorValue>>) {
        if let Some(answer) = self.0.take() {
            answer(result);
        }
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        if let Some(answer) = self.0.take() {
            answer(Err(Arc::new(reader_gone())));
        }
    }
}

/// One chunk on its way to the reader.
pub(crate) struct Item {
    pub(crate) chunk: Value,
    pub(crate) bytes: usize,
    pub(crate) ack: Option<Ack>,
    /// The room it takes of what the session may hold.
    pub(crate) _charge: Option<Charge>,
}

enum End {
    Closed(Option<Ack>),
    Failed(Arc<ErrorValue>),
}

#[derive(Default)]
struct State {
    queue: VecDeque<Item>,
    bytes: usize,
    end: Option<End>,
    canceled: Option<Arc<ErrorValue>>,
}

/// A queue of chunks with one reader.
pub(crate) struct Channel {
    limit: usize,
    state: Mutex<State>,
    /// Tells a producer at a peer at once, not only at its next write.
    on_cancel: Mutex<Option<CancelFn>>,
    readable: Notify,
    changed: Notify,
}

impl Channel {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            state: Mutex::default(),
            on_cancel: Mutex::default(),
            readable: Notify::new(),
            changed: Notify::new(),
        })
    }

    /// Calls back when the reader goes away before the end.
    pub(crate) fn on_cancel(&self, tell: impl FnOnce(&Arc<ErrorValue>) + Send + 'static) {
        *lock(&self.on_cancel) = Some(Box::new(tell));
    }

    /// Puts a chunk at the end whatever the room. Its ack answers if the
    /// stream cannot take it.
    pub(crate) fn push(&self, item: Item) {
        let mut state = lock(&self.state);
        let refused = match (&state.canceled, &state.end) {
            (Some(reason), _) => Some(reason.clone()),
            (None, Some(End::Failed(error))) => Some(error.clone()),
            (None, Some(End::Closed(_))) => {
                Some(Arc::new(ErrorValue::type_error("The stream is closed.")))
            }
            (None, None) => None,
        };
        if let Some(reason) = refused {
            drop(state);
            if let Some(ack) = item.ack {
                ack.answer(Err(reason));
            }
            return;
        }
        state.bytes = state.bytes.saturating_add(item.bytes);
        state.queue.push_back(item);
        drop(state);
        self.readable.notify_one();
    }

    /// Waits for room, then puts the chunk at the end.
    pub(crate) async fn write(&self, chunk: Value) -> Result<(), Canceled> {
        let bytes = chunk.weight();
        let mut chunk = Some(chunk);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = lock(&self.state);
                if let Some(reason) = &state.canceled {
                    return Err(Canceled(ErrorValue::clone(reason)));
                }
                if (state.queue.is_empty() || state.bytes.saturating_add(bytes) <= self.limit)
                    && let Some(chunk) = chunk.take()
                {
                    state.bytes = state.bytes.saturating_add(bytes);
                    state.queue.push_back(Item {
                        chunk,
                        bytes,
                        ack: None,
                        _charge: None,
                    });
                    drop(state);
                    self.readable.notify_one();
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// No more chunks; the reader still gets those that wait.
    pub(crate) fn close(&self, ack: Option<Ack>) {
        let mut state = lock(&self.state);
        let refused = match (&state.canceled, &state.end) {
            (Some(reason), _) => Some(reason.clone()),
            (None, Some(End::Failed(error))) => Some(error.clone()),
            (None, Some(End::Closed(_))) => {
                Some(Arc::new(ErrorValue::type_error("The stream is closed.")))
            }
            (None, None) => None,
        };
        match refused {
            None => {
                state.end = Some(End::Closed(ack));
                drop(state);
                self.readable.notify_one();
            }
            Some(reason) => {
                drop(state);
                if let Some(ack) = ack {
                    ack.answer(Err(reason));
                }
            }
        }
    }

    /// No more chunks, and those that wait are lost.
    pub(crate) fn fail(&self, error: Arc<ErrorValue>) {
        let mut state = lock(&self.state);
        if state.canceled.is_some() || state.end.is_some() {
            return;
        }
        state.end = Some(End::Failed(error.clone()));
        let lost = std::mem::take(&mut state.queue);
        state.bytes = 0;
        drop(state);
        refuse(lost, &error);
        self.readable.notify_one();
        self.changed.notify_waiters();
    }

    /// The reader wants no more.
    pub(crate) fn cancel(&self, reason: Arc<ErrorValue>) {
        let mut state = lock(&self.state);
        if state.canceled.is_some() {
            return;
        }
        state.canceled = Some(reason.clone());
        let lost = std::mem::take(&mut state.queue);
        let end = state.end.take();
        state.bytes = 0;
        drop(state);
        refuse(lost, &reason);
        let tell = lock(&self.on_cancel).take();
        match (end, tell) {
            (None, Some(tell)) => tell(&reason),
            (Some(End::Closed(Some(ack))), _) => ack.answer(Err(reason)),
            _ => {}
        }
        self.readable.notify_one();
        self.changed.notify_waiters();
    }

    /// Resolves when the reader is gone.
    pub(crate) async fn canceled(&self) -> Arc<ErrorValue> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(reason) = &lock(&self.state).canceled {
                return reason.clone();
            }
            changed.await;
        }
    }

    /// Resolves when every chunk was read, or with the reason why not.
    pub(crate) async fn read_to_end(&self) -> Result<(), Arc<ErrorValue>> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let state = lock(&self.state);
                if let Some(reason) = &state.canceled {
                    return Err(reason.clone());
                }
                if state.queue.is_empty() && matches!(state.end, Some(End::Closed(None))) {
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// The next chunk, for the one reader.
    pub(crate) async fn next(&self) -> Option<Result<Value, ErrorValue>> {
        loop {
            {
                let mut state = lock(&self.state);
                if let Some(item) = state.queue.pop_front() {
                    state.bytes = state.bytes.saturating_sub(item.bytes);
                    drop(state);
                    if let Some(ack) = item.ack {
                        ack.answer(Ok(()));
                    }
                    self.changed.notify_waiters();
                    return Some(Ok(item.chunk));
                }
                if state.canceled.is_some() {
                    return None;
                }
                match &mut state.end {
                    Some(End::Failed(error)) => {
                        let error = error.clone();
                        state.end = Some(End::Closed(None));
                        return Some(Err(Arc::unwrap_or_clone(error)));
                    }
                    Some(End::Closed(ack)) => {
                        let ack = ack.take();
                        drop(state);
                        if let Some(ack) = ack {
                            ack.answer(Ok(()));
                        }
                        self.changed.notify_waiters();
                        return None;
                    }
                    None => {}
                }
            }
            self.readable.notified().await;
        }
    }
}

fn refuse(mut items: VecDeque<Item>, reason: &Arc<ErrorValue>) {
    for ack in items.iter_mut().filter_map(|item| item.ack.take()) {
        ack.answer(Err(reason.clone()));
    }
    bury(items);
}

/// A chunk may hold a stream whose chunks hold streams.
fn bury(items: VecDeque<Item>) {
    if !items.is_empty() {
        remains::let_go(items);
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        bury(std::mem::take(&mut state.queue));
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        write!(out, "{} chunks, {} bytes", state.queue.len(), state.bytes)
    }
}
