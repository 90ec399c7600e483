//! When timers are due. Timers of one moment fire in the order they were set.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Longest delay; more would overflow the clock. A year.
const LONGEST_MS: f64 = 366.0 * 24.0 * 3600.0 * 1000.0;

/// The timers of one script.
#[derive(Debug, Default)]
pub struct Timers {
    due: BTreeMap<(Instant, u64), u32>,
    order: u64,
}

impl Timers {
    /// Sets timer `id` to `millis` after `now`.
    pub fn set(&mut self, id: u32, millis: f64, now: Instant) {
        // NaN compares as neither, and becomes the shortest delay.
        let millis = if millis > 0.0 {
            millis.min(LONGEST_MS)
        } else {
            0.0
        };
        self.order += 1;
        let when = now + Duration::from_secs_f64(millis / 1000.0);
        self.due.insert((when, self.order), id);
    }

    /// Forgets timer `id`.
    pub fn clear(&mut self, id: u32) {
        self.due.retain(|_, due| *due != id);
    }

    /// When the next timer is due.
    pub fn next(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((when, _), _)| *when)
    }

    /// Takes out one timer that is due at `now`.
    pub fn take_due(&mut self, now: Instant) -> Option<u32> {
        let entry = self.due.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_delays_keep_their_order() {
        let now = Instant::now();
        let mut timers = Timers::default();
        timers.set(2, 5.0, now);
        timers.set(1, 5.0, now);
        timers.set(3, f64::NAN, now);
        let later = now + Duration::from_millis(5);
        let fired: Vec<_> = std::iter::from_fn(|| timers.take_due(later)).collect();
        assert_eq!(fired, [3, 2, 1]);
    }

    #[test]
    fn a_cleared_timer_does_not_fire() {
        let now = Instant::now();
        let mut timers = Timers::default();
        timers.set(1, 0.0, now);
        timers.clear(1);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn endless_delays_do_not_overflow() {
        let now = Instant::now();
        let mut timers = Timers::default();
        timers.set(1, f64::INFINITY, now);
        assert_eq!(timers.take_due(now), None);
    }
}
