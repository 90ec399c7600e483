//! Numbers for those who watch a server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hutch_protocol::{InstanceType, Status};

/// The upper bounds of the buckets of boot times, in milliseconds. Longer ones
/// are in none but the total.
pub const BOOT_BUCKETS_MS: [u64; 12] = [
    10, 25, 50, 75, 100, 250, 500, 1000, 2500, 5000, 15_000, 60_000,
];

/// What happened since this server started, and what is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Sandboxes of all projects by status.
    pub sandboxes: Vec<(Status, u64)>,
    /// Machines that boot or run, and their limit, by size.
    pub instances: Vec<(InstanceType, usize, usize)>,
    /// Boots that ended well.
    pub boots: u64,
    /// Boots that failed, refusals for want of room among them.
    pub boot_failures: u64,
    /// Boots that took at most as long as the bound of the same place in
    /// [`BOOT_BUCKETS_MS`]; cumulative.
    pub boot_buckets: [u64; BOOT_BUCKETS_MS.len()],
    /// The time of all boots together.
    pub boot_time: Duration,
    /// Sleeps, by request or by the idle timer.
    pub sleeps: u64,
    /// Sleeps whose snapshot failed.
    pub snapshot_failures: u64,
    /// Workspaces that could not be restored.
    pub restore_failures: u64,
    /// Machines that ended by themselves.
    pub crashes: u64,
    /// Machines of an earlier server that this one took over.
    pub adopted: u64,
}

/// Where actors count.
#[derive(Default)]
pub(crate) struct Meter {
    boots: AtomicU64,
    boot_buckets: [AtomicU64; BOOT_BUCKETS_MS.len()],
    boot_micros: AtomicU64,
    pub(crate) boot_failures: AtomicU64,
    pub(crate) sleeps: AtomicU64,
    pub(crate) snapshot_failures: AtomicU64,
    pub(crate) restore_failures: AtomicU64,
    pub(crate) crashes: AtomicU64,
    pub(crate) adopted: AtomicU64,
}

/// Counts one.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Meter {
    pub(crate) fn booted(&self, took: Duration) {
        count(&self.boots);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.boot_micros.fetch_add(micros, Ordering::Relaxed);
        for (bound, bucket) in BOOT_BUCKETS_MS.iter().zip(&self.boot_buckets) {
            if took <= Duration::from_millis(*bound) {
                count(bucket);
            }
        }
    }

    /// The counters; sandboxes and instances are the registry's to add.
    pub(crate) fn read(&self) -> Metrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Metrics {
            sandboxes: Vec::new(),
            instances: Vec::new(),
            boots: read(&self.boots),
            boot_failures: read(&self.boot_failures),
            boot_buckets: std::array::from_fn(|place| self.boot_buckets.get(place).map_or(0, read)),
            boot_time: Duration::from_micros(read(&self.boot_micros)),
            sleeps: read(&self.sleeps),
            snapshot_failures: read(&self.snapshot_failures),
            restore_failures: read(&self.restore_failures),
            crashes: read(&self.crashes),
            adopted: read(&self.adopted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let meter = Meter::default();
        meter.booted(Duration::from_millis(40));
        meter.booted(Duration::from_secs(600));
        let read = meter.read();
        assert_eq!(
            (read.boots, read.boot_buckets[1..4].to_vec()),
            (2, vec![0, 1, 1])
        );
        assert_eq!(read.boot_buckets.last(), Some(&1));
        assert_eq!(read.boot_time, Duration::from_millis(600_040));
    }
}
