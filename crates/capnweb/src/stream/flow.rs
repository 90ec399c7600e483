//! How much of a sent stream may be under way at one time.
//!
//! The window follows the bandwidth-delay product: the rate at which the peer
//! acknowledges times the shortest round trip seen. It doubles while the rate
//! still grows, then grows by a quarter at a time, and shrinks slowly when the
//! peer falls behind.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::error::ErrorValue;
use crate::lock::lock;

const INITIAL: usize = 256 * 1024;
const LEAST: usize = 64 * 1024;
/// Rounds without growth after which the search for the limit is over.
const FLAT_ROUNDS: u32 = 3;

/// The window of one sent stream.
#[derive(Debug)]
pub(crate) struct Flow {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    most: usize,
    window: usize,
    in_flight: usize,
    delivered: u64,
    delivered_at: Option<Instant>,
    shortest: Duration,
    searching: bool,
    flat: u32,
    round_window: usize,
    round_start: Option<Instant>,
    failed: Option<Arc<ErrorValue>>,
}

/// One write under way.
#[derive(Debug)]
pub(crate) struct Sent {
    bytes: usize,
    at: Instant,
    delivered: u64,
    delivered_at: Option<Instant>,
    window: usize,
    filled: bool,
}

impl Flow {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                most: most.max(LEAST),
                window: INITIAL.min(most.max(LEAST)),
                in_flight: 0,
                delivered: 0,
                delivered_at: None,
                shortest: Duration::MAX,
                searching: true,
                flat: 0,
                round_window: 0,
                round_start: None,
                failed: None,
            }),
            changed: Notify::new(),
        })
    }

    /// Waits until the window has room.
    pub(crate) async fn room(&self) -> Result<(), Arc<ErrorValue>> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let state = lock(&self.state);
                if let Some(error) = &state.failed {
                    return Err(error.clone());
                }
                if state.in_flight < state.window {
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// Resolves when the stream has failed.
    pub(crate) async fn failed(&self) -> Arc<ErrorValue> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(error) = &lock(&self.state).failed {
                return error.clone();
            }
            changed.await;
        }
    }

    /// Counts a write of so many bytes.
    pub(crate) fn sent(&self, bytes: usize, now: Instant) -> Sent {
        let mut state = lock(&self.state);
        state.in_flight = state.in_flight.saturating_add(bytes);
        Sent {
            bytes,
            at: now,
            delivered: state.delivered,
            delivered_at: state.delivered_at,
            window: state.window,
            filled: state.in_flight >= state.window,
        }
    }

    /// The peer has taken a write.
    pub(crate) fn acknowledged(&self, sent: &Sent, now: Instant) {
        let mut state = lock(&self.state);
        state.in_flight = state.in_flight.saturating_sub(sent.bytes);
        state.delivered = state.delivered.saturating_add(sent.bytes as u64);
        state.delivered_at = Some(now);
        let round_trip = now.saturating_duration_since(sent.at);
        state.shortest = state.shortest.min(round_trip);
        if let Some(base) = sent.delivered_at {
            state.resize(sent, base, now);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The stream is over.
    pub(crate) fn fail(&self, error: Arc<ErrorValue>) {
        let mut state = lock(&self.state);
        if state.failed.is_none() {
            state.failed = Some(error);
        }
        drop(state);
        self.changed.notify_waiters();
    }
}

impl State {
    fn resize(&mut self, sent: &Sent, base: Instant, now: Instant) {
        let interval = now.saturating_duration_since(base).as_secs_f64().max(1e-6);
        let rate = self.delivered.saturating_sub(sent.delivered) as f64 / interval;
        let growth = if self.searching { 2.0 } else { 1.25 };
        let estimate = rate * self.shortest.as_secs_f64() * growth;
        let at_send = sent.window as f64;
        let wanted = estimate.min(at_send * growth);
        let wanted = if sent.filled {
            wanted.max(at_send * 0.9)
        } else {
            wanted.max(self.window as f64)
        };
        self.window = (wanted as usize).clamp(LEAST, self.most);
        if self.searching && self.round_start.is_none_or(|start| sent.at >= start) {
            if self.window as f64 > self.round_window as f64 * 1.25 {
                self.flat = 0;
            } else {
                self.flat += 1;
                self.searching = self.flat < FLAT_ROUNDS;
            }
            self.round_start = Some(now);
            self.round_window = self.window;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(flow: &Flow) -> usize {
        lock(&flow.state).window
    }

    /// A peer with a fixed rate and delay: the window ends near their product.
    #[test]
    fn the_window_finds_what_the_peer_can_take() {
        let flow = Flow::new(64 << 20);
        let start = Instant::now();
        let (rate, delay, chunk) = (50.0 * 1024.0 * 1024.0, 0.05, 65_536_usize);
        let mut now = 0.0_f64;
        let mut link_free = 0.0_f64;
        let mut under_way = std::collections::VecDeque::new();
        for _ in 0..20_000 {
            let room = {
                let state = lock(&flow.state);
                state.in_flight < state.window
            };
            if room {
                link_free = link_free.max(now) + chunk as f64 / rate;
                under_way.push_back((
                    link_free + delay,
                    flow.sent(chunk, start + Duration::from_secs_f64(now)),
                ));
            } else if let Some((at, sent)) = under_way.pop_front() {
                now = f64::max(now, at);
                flow.acknowledged(&sent, start + Duration::from_secs_f64(now));
            }
        }
        let product = rate * delay;
        let window = window(&flow) as f64;
        assert!(
            window > product && window < product * 4.0,
            "{window} for {product}"
        );
    }

    #[test]
    fn a_slow_reader_never_opens_the_window_beyond_the_most() {
        let flow = Flow::new(1 << 20);
        let start = Instant::now();
        for step in 0..1000_u64 {
            let sent = flow.sent(1 << 18, start + Duration::from_micros(step * 10));
            flow.acknowledged(&sent, start + Duration::from_micros(step * 10 + 5));
        }
        assert!(window(&flow) <= 1 << 20);
    }
}
