//! The v1 controllers: limits and accounts.

use std::io;
use std::path::PathBuf;

use super::file;
use super::{Hierarchies, Limits, PERIOD};
use crate::Usage;

/// The path of `group` in the hierarchy of `controller`.
fn path(hierarchies: &Hierarchies, controller: &str, group: &str) -> Option<PathBuf> {
    Some(hierarchies.v1.get(controller)?.join(group))
}

/// Writes the limits. The whole first: a part may not exceed it.
pub fn limit(hierarchies: &Hierarchies, group: &str, limits: &Limits) -> io::Result<()> {
    let commands = format!("{group}/commands");
    for (group, memory, pids) in [
        (group, limits.memory, limits.pids),
        (&commands, limits.commands_memory, limits.commands_pids),
    ] {
        if let Some(path) = path(hierarchies, "memory", group) {
            file::write(&path.join("memory.limit_in_bytes"), memory.to_string())?;
            // Where the kernel counts swap, memory and swap share the limit.
            let with_swap = path.join("memory.memsw.limit_in_bytes");
            if with_swap.exists() {
                file::write(&with_swap, memory.to_string())?;
            }
        }
        if let Some(path) = path(hierarchies, "pids", group) {
            file::write(&path.join("pids.max"), pids.to_string())?;
        }
    }
    if let Some(path) = path(hierarchies, "cpu", group) {
        file::write(&path.join("cpu.shares"), limits.cpu_shares.to_string())?;
        if let Some(quota) = limits.cpu_quota {
            file::write(&path.join("cpu.cfs_period_us"), PERIOD.to_string())?;
            file::write(&path.join("cpu.cfs_quota_us"), quota.to_string())?;
        }
    }
    Ok(())
}

/// Reads the accounts.
pub fn usage(hierarchies: &Hierarchies, group: &str) -> io::Result<Usage> {
    let of = |group: &str, controller: &str, name: &str| match path(hierarchies, controller, group)
    {
        Some(path) => file::number(&path.join(name)),
        None => Ok(0),
    };
    let read = |controller: &str, name: &str| of(group, controller, name);
    let commands = format!("{group}/commands");
    Ok(Usage {
        cpu_ns: read("cpuacct", "cpuacct.usage")?,
        commands_cpu_ns: of(&commands, "cpuacct", "cpuacct.usage")?,
        memory_bytes: read("memory", "memory.usage_in_bytes")?,
        pids: read("pids", "pids.current")?,
        oom_kills: oom_kills(hierarchies, group),
    })
}

/// How many processes the kernel killed for memory. Each group counts its own.
pub fn oom_kills(hierarchies: &Hierarchies, group: &str) -> u64 {
    let count = |part: &str| {
        let path = path(hierarchies, "memory", &format!("{group}{part}"))?;
        file::field(&path.join("memory.oom_control"), "oom_kill").ok()?
    };
    ["", "/daemon", "/commands"]
        .into_iter()
        .filter_map(count)
        .sum()
}
