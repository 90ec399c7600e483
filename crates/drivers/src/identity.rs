//! How a boot is told from every other.

use hutch_protocol::{BootId, Generation};
use serde::{Deserialize, Serialize};

use crate::SandboxKey;

/// What identifies a running boot beyond doubt. A server adopts a boot only
/// where all of it agrees with its record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootIdentity {
    /// The boot's id.
    pub boot: BootId,
    /// The sandbox that booted.
    pub sandbox: SandboxKey,
    /// The kernel's id of the machine's own boot: every other number below
    /// means something only until the machine starts anew.
    #[serde(default)]
    pub machine: String,
    /// PID 1's process id on the host.
    pub pid: u32,
    /// PID 1's start time in clock ticks after the machine's boot.
    pub start_time: u64,
    /// The control group, relative to each hierarchy.
    pub cgroup: String,
    /// The inode of that group in the v2 hierarchy.
    #[serde(default)]
    pub cgroup_inode: u64,
    /// The inode of its network namespace.
    pub netns_inode: u64,
    /// The inode of its pid namespace.
    #[serde(default)]
    pub pidns_inode: u64,
    /// The server generation that started it.
    pub generation: Generation,
    /// The id of the data directory that it belongs to.
    pub data_dir: String,
}
