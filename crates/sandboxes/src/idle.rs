//! Whether a machine's CPU was quiet, from samples taken on the host.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Samples kept per idle time.
const PER_WINDOW: u32 = 8;

/// A sliding window of CPU use.
#[derive(Debug, Default)]
pub(crate) struct CpuWindow {
    samples: VecDeque<(Instant, Duration)>,
}

impl CpuWindow {
    /// When to sample next, for an idle time and the time since the last
    /// activity: at the latest when both make it due.
    pub(crate) fn next(idle: Duration, since: Duration) -> Duration {
        let least = Duration::from_millis(50);
        let interval = (idle / PER_WINDOW).clamp(least, Duration::from_secs(15));
        match idle.checked_sub(since).filter(|left| !left.is_zero()) {
            Some(left) => interval.min(left.max(least)),
            None => interval,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.samples.clear();
    }

    /// Adds a sample and drops those that no question needs any more.
    pub(crate) fn add(&mut self, at: Instant, cpu: Duration, idle: Duration) {
        self.samples.push_back((at, cpu));
        // One sample at or before the window's start must stay.
        while self
            .samples
            .get(1)
            .is_some_and(|(next, _)| at.duration_since(*next) >= idle)
        {
            self.samples.pop_front();
        }
    }

    /// The average use over the last `idle`, in parts of a core; none until the
    /// samples reach back that far.
    pub(crate) fn average(&self, idle: Duration) -> Option<f64> {
        let (first, before) = self.samples.front()?;
        let (last, after) = self.samples.back()?;
        let span = last.duration_since(*first);
        if span < idle || span.is_zero() {
            return None;
        }
        Some(after.saturating_sub(*before).as_secs_f64() / span.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_needs_a_whole_window() {
        let start = Instant::now();
        let idle = Duration::from_secs(8);
        let mut window = CpuWindow::default();
        for second in 0..8 {
            window.add(start + Duration::from_secs(second), Duration::ZERO, idle);
            assert_eq!(window.average(idle), None);
        }
        window.add(start + idle, Duration::from_secs(2), idle);
        assert_eq!(window.average(idle), Some(0.25));
    }

    #[test]
    fn the_next_sample_is_due_when_sleep_is() {
        let seconds = Duration::from_secs;
        assert_eq!(CpuWindow::next(seconds(600), seconds(0)), seconds(15));
        assert_eq!(CpuWindow::next(seconds(600), seconds(597)), seconds(3));
        assert_eq!(CpuWindow::next(seconds(600), seconds(700)), seconds(15));
        let least = Duration::from_millis(50);
        assert_eq!(CpuWindow::next(least, least), least);
    }

    #[test]
    fn old_use_leaves_the_window_and_memory_stays_small() {
        let start = Instant::now();
        let idle = Duration::from_secs(8);
        let mut window = CpuWindow::default();
        window.add(start, Duration::ZERO, idle);
        for second in 1..1000 {
            window.add(
                start + Duration::from_secs(second),
                Duration::from_secs(1),
                idle,
            );
        }
        assert_eq!(window.average(idle), Some(0.0));
        assert!(window.samples.len() <= 10);
    }
}
