//! The messages that wait for the peer to read them.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::sync::Notify;

use crate::lock::lock;
use crate::transport::Text;

#[derive(Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    filled: Notify,
    room: Notify,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Text>,
    bytes: usize,
    /// Imports that nobody here holds any more.
    released: Vec<i64>,
    closed: bool,
}

/// The next thing for the writer to do.
pub(super) enum Next {
    Send(Text),
    Release(Vec<i64>),
    Nothing,
}

impl Outbox {
    pub(super) fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }

    /// Queues a message. After the end of the session it is lost.
    pub(super) fn push(&self, text: String) {
        let mut state = lock(&self.state);
        if !state.closed {
            state.bytes += text.len();
            state.queue.push_back(text.into());
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Notes an import to release.
    pub(super) fn release(&self, id: i64) {
        let mut state = lock(&self.state);
        if !state.closed {
            state.released.push(id);
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Takes no more messages. Those that wait are lost unless `keep`; `last`
    /// goes out behind them.
    pub(super) fn close(&self, keep: bool, last: Option<String>) {
        let mut state = lock(&self.state);
        state.closed = true;
        if !keep {
            state.queue.clear();
            state.bytes = 0;
        }
        if let Some(last) = last {
            state.bytes += last.len();
            state.queue.push_back(last.into());
        }
        drop(state);
        self.filled.notify_one();
        self.room.notify_waiters();
    }

    pub(super) fn next(&self, limit: usize) -> Next {
        let mut state = lock(&self.state);
        if !state.released.is_empty() {
            return Next::Release(std::mem::take(&mut state.released));
        }
        let Some(text) = state.queue.pop_front() else {
            return Next::Nothing;
        };
        state.bytes = state.bytes.saturating_sub(text.len());
        let room = state.bytes < limit;
        drop(state);
        if room {
            self.room.notify_one();
        }
        Next::Send(text)
    }

    /// Lets the writer look again.
    pub(super) fn wake(&self) {
        self.filled.notify_one();
    }

    /// Waits until there is something to do.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Waits until fewer bytes than the limit are queued, or the session has ended.
    pub(super) async fn room(&self, limit: usize) {
        loop {
            let waiting = self.room.notified();
            tokio::pin!(waiting);
            waiting.as_mut().enable();
            {
                let state = lock(&self.state);
                if state.closed || state.bytes < limit {
                    break;
                }
            }
            waiting.await;
        }
    }

    /// Wakes the next one that waits, if there is still room.
    pub(super) fn pass_on(&self, limit: usize) {
        if self.bytes() < limit {
            self.room.notify_one();
        }
    }
}
