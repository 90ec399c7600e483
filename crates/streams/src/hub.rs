//! Who waits for which stream.
//!
//! The writer only says how far a stream has come; it never hands over events,
//! so a slow subscriber costs one number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::error::StoreError;
use crate::event::StreamKey;

/// Open subscriptions by stream.
#[derive(Debug)]
pub(crate) struct Hub {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    open: usize,
    streams: HashMap<StreamKey, Watched>,
}

#[derive(Debug)]
struct Watched {
    head: watch::Sender<u64>,
    subscribers: usize,
}

impl Hub {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts listening. What is committed from now on is told.
    pub(crate) fn listen(self: &Arc<Self>, stream: &StreamKey) -> Result<Listener, StoreError> {
        let mut state = self.state();
        if state.closed {
            return Err(StoreError::Closed);
        }
        if state.open >= self.limit {
            return Err(StoreError::TooManySubscriptions { limit: self.limit });
        }
        state.open += 1;
        let watched = state
            .streams
            .entry(stream.clone())
            .or_insert_with(|| Watched {
                head: watch::Sender::new(0),
                subscribers: 0,
            });
        watched.subscribers += 1;
        Ok(Listener {
            head: watched.head.subscribe(),
            hub: Arc::clone(self),
            stream: stream.clone(),
        })
    }

    /// Tells how far a stream has come. Called by the writer, in commit order.
    pub(crate) fn publish(&self, stream: &StreamKey, max_offset: u64) {
        if let Some(watched) = self.state().streams.get(stream) {
            watched.head.send_replace(max_offset);
        }
    }

    /// Ends every subscription, now and later.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.streams.clear();
    }

    #[cfg(test)]
    pub(crate) fn open(&self) -> (usize, usize) {
        let state = self.state();
        (state.open, state.streams.len())
    }
}

/// One subscriber's ear.
#[derive(Debug)]
pub(crate) struct Listener {
    head: watch::Receiver<u64>,
    hub: Arc<Hub>,
    stream: StreamKey,
}

impl Listener {
    /// From now on only later commits wake [`Listener::changed`].
    pub(crate) fn mark_seen(&mut self) {
        self.head.mark_unchanged();
    }

    /// Waits for the next commit to the stream.
    pub(crate) async fn changed(&mut self) -> Result<(), StoreError> {
        self.head.changed().await.map_err(|_| StoreError::Closed)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        state.open -= 1;
        if let Some(watched) = state.streams.get_mut(&self.stream) {
            watched.subscribers -= 1;
            if watched.subscribers == 0 {
                state.streams.remove(&self.stream);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn stream(path: &str) -> StreamKey {
        StreamKey {
            project: None,
            path: path.parse().unwrap(),
        }
    }

    #[test]
    fn a_dropped_listener_leaves_nothing_behind() {
        let hub = Arc::new(Hub::new(10));
        let first = hub.listen(&stream("/a")).unwrap();
        let second = hub.listen(&stream("/a")).unwrap();
        let other = hub.listen(&stream("/b")).unwrap();
        assert_eq!(hub.open(), (3, 2));
        drop((first, other));
        assert_eq!(hub.open(), (1, 1));
        drop(second);
        assert_eq!(hub.open(), (0, 0));
    }

    #[test]
    fn listeners_have_a_limit() {
        let hub = Arc::new(Hub::new(1));
        let held = hub.listen(&stream("/a")).unwrap();
        let refused = hub.listen(&stream("/b"));
        assert!(matches!(
            refused,
            Err(StoreError::TooManySubscriptions { limit: 1 })
        ));
        drop(held);
        assert!(hub.listen(&stream("/b")).is_ok());
    }

    #[test]
    fn a_closed_hub_ends_its_listeners() {
        let hub = Arc::new(Hub::new(10));
        let listener = hub.listen(&stream("/a")).unwrap();
        hub.close();
        assert!(listener.head.has_changed().is_err());
        assert!(matches!(hub.listen(&stream("/a")), Err(StoreError::Closed)));
        drop(listener);
        assert_eq!(hub.open(), (0, 0));
    }
}
