//! Deadlines and bounds of the lifecycle, each with a default.

use std::time::Duration;

use crate::slots::MaxInstances;

/// What an operator may tune.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long one boot may take, from the request to the first answer.
    pub boot_deadline: Duration,
    /// How long one control call to a running machine may take.
    pub control_deadline: Duration,
    /// How long a snapshot may take.
    pub snapshot_deadline: Duration,
    /// How long freezing may take before it is given up.
    pub freeze_deadline: Duration,
    /// Calls that may wait for one sandbox's lifecycle steps.
    pub waiting_calls: usize,
    /// Calls and streams that may be open on one sandbox.
    pub open_calls: usize,
    /// Followers that one sandbox's state may have.
    pub followers: usize,
    /// The most machines of each size that may boot or run.
    pub max_instances: MaxInstances,
    /// The CPU use below which a sandbox counts as idle, in parts of a core.
    pub idle_cpu: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            boot_deadline: Duration::from_secs(60),
            control_deadline: Duration::from_secs(10),
            snapshot_deadline: Duration::from_secs(1800),
            freeze_deadline: Duration::from_secs(2),
            waiting_calls: 1024,
            open_calls: 1024,
            followers: 256,
            max_instances: MaxInstances::default(),
            idle_cpu: 0.01,
        }
    }
}
