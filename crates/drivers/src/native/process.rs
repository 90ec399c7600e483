//! What identifies a process beyond its number.

use std::fs;
use std::io;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

/// Bounds core files to one byte, which is none. The kernel takes a limit of
/// exactly one as a word not to run the host's core program either, which it
/// does at zero.
pub fn bound_core_files() -> io::Result<()> {
    let one = getrlimit(Resource::Core).maximum.unwrap_or(1).min(1);
    let limit = Rlimit {
        current: Some(one),
        maximum: Some(one),
    };
    Ok(setrlimit(Resource::Core, limit)?)
}

/// Allows as many descriptors as the machine gives: a boot takes four.
pub fn raise_descriptors() -> io::Result<()> {
    let most = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: most,
        maximum: most,
    };
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Keeps what this process has in memory from core files and from every other
/// process of its user: secrets are among it.
///
/// # Errors
/// The kernel refuses, which it has no reason to.
pub fn forbid_core_dumps() -> io::Result<()> {
    bound_core_files()?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// A process's start time in clock ticks after the machine's boot.
pub fn start_time(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything, parentheses too.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after
        .split_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat is not readable")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn own_start_time_is_read_and_stays() {
        let pid = std::process::id();
        let first = start_time(pid).unwrap();
        assert!(first > 0);
        assert_eq!(first, start_time(pid).unwrap());
    }
}
