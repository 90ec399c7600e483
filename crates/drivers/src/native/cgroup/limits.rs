//! What an instance type means in numbers of the kernel.

use hutch_protocol::InstanceType;

use crate::CpuLimit;

const MIB: u64 = 1024 * 1024;

/// The limits of one boot: the whole, and what commands may take of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory of the whole sandbox, in bytes.
    pub memory: u64,
    /// Memory of its commands, in bytes.
    pub commands_memory: u64,
    /// Processes and threads of the whole sandbox.
    pub pids: u64,
    /// Processes and threads of its commands.
    pub commands_pids: u64,
    /// The weight against neighbours when the CPU is short (v1 shares).
    pub cpu_shares: u64,
    /// CPU time in each [`PERIOD`], in microseconds; none if it may burst.
    pub cpu_quota: Option<u64>,
}

/// How often a quota of CPU time is given anew, in microseconds.
pub const PERIOD: u64 = 100_000;

/// Processes and threads that stay the daemon's.
const DAEMON_PIDS: u64 = 32;

impl Limits {
    /// The limits of a size.
    pub fn of(size: InstanceType, cpu: CpuLimit) -> Self {
        let millis = u64::from(size.cpu_millis());
        let memory = size.memory_bytes();
        let pids = u64::from(size.pids());
        Self {
            memory,
            commands_memory: memory - (memory / 8).clamp(32 * MIB, 128 * MIB),
            pids,
            commands_pids: pids - DAEMON_PIDS,
            // The kernel's unit: 1024 for one core's worth, at least 2.
            cpu_shares: (millis * 1024 / 1000).max(2),
            cpu_quota: match cpu {
                CpuLimit::Share => None,
                CpuLimit::Capped => Some(millis * PERIOD / 1000),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_leaves_the_daemon_room_and_commands_most() {
        for size in InstanceType::ALL {
            let limits = Limits::of(size, CpuLimit::Share);
            assert!(limits.memory - limits.commands_memory >= 32 * MIB, "{size}");
            assert!(limits.commands_memory >= limits.memory * 7 / 8, "{size}");
            assert!(limits.commands_pids < limits.pids, "{size}");
        }
    }
}
