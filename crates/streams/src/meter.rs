//! Numbers for those who watch a store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::StoreError;
use crate::transaction::Outcome;

/// The upper bounds of the buckets of commit times, in milliseconds. Longer
/// ones are in none but the total.
pub const COMMIT_BUCKETS_MS: [u64; 10] = [1, 2, 5, 10, 25, 50, 100, 500, 1000, 10_000];

/// What a store has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreMetrics {
    /// Transactions that are durable.
    pub commits: u64,
    /// Events that they appended.
    pub events: u64,
    /// Transactions that the store could not do; refusals are not counted.
    pub failures: u64,
    /// Commits that took at most as long as the bound of the same place in
    /// [`COMMIT_BUCKETS_MS`], the wait for the writer included; cumulative.
    pub commit_buckets: [u64; COMMIT_BUCKETS_MS.len()],
    /// The time of all commits together.
    pub commit_time: Duration,
}

/// Where commits are counted.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    commits: AtomicU64,
    events: AtomicU64,
    failures: AtomicU64,
    buckets: [AtomicU64; COMMIT_BUCKETS_MS.len()],
    micros: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Meter {
    pub(crate) fn committed(&self, outcome: &Result<Outcome, StoreError>, took: Duration) {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(StoreError::Database(_) | StoreError::Damaged(_) | StoreError::Closed) => {
                return add(&self.failures, 1);
            }
            Err(_) => return,
        };
        add(&self.commits, 1);
        add(&self.events, outcome.events().count() as u64);
        add(
            &self.micros,
            u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        );
        for (bound, bucket) in COMMIT_BUCKETS_MS.iter().zip(&self.buckets) {
            if took <= Duration::from_millis(*bound) {
                add(bucket, 1);
            }
        }
    }

    pub(crate) fn read(&self) -> StoreMetrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreMetrics {
            commits: read(&self.commits),
            events: read(&self.events),
            failures: read(&self.failures),
            commit_buckets: std::array::from_fn(|place| self.buckets.get(place).map_or(0, read)),
            commit_time: Duration::from_micros(read(&self.micros)),
        }
    }
}
