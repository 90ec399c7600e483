//! Whether a process is the boot that a record names.
//!
//! A process id alone says nothing: it may be another process's by now. Both
//! the server and a spawner that takes over ask here before they believe a
//! record, and one difference is enough to refuse it.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::cgroup::Hierarchies;
use super::process;
use crate::BootIdentity;

/// The kernel's id of the machine's own boot.
pub fn machine() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

/// The inode of one of a process's namespaces.
pub fn namespace(pid: u32, kind: &str) -> io::Result<u64> {
    Ok(fs::metadata(format!("/proc/{pid}/ns/{kind}"))?.ino())
}

/// The inode of a group in the v2 hierarchy.
pub fn group_inode(hierarchies: &Hierarchies, group: &str) -> io::Result<u64> {
    let v2 = hierarchies.v2.as_ref().ok_or(io::ErrorKind::Unsupported)?;
    Ok(fs::metadata(v2.join(group))?.ino())
}

/// Whether the process of a pidfd is gone.
pub fn has_ended(pidfd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let now = Timespec::default();
    matches!(poll(&mut fds, Some(&now)), Ok(1..))
}

/// Compares everything on record with what the kernel says now. The caller
/// holds a pidfd from before the call and asks [`has_ended`] after it: then the
/// number was not given to another process in between.
///
/// # Errors
/// What differs, in words.
pub fn check(identity: &BootIdentity, hierarchies: &Hierarchies) -> Result<(), String> {
    let pid = identity.pid;
    agree("the machine's boot", machine(), identity.machine.clone())?;
    agree("start time", process::start_time(pid), identity.start_time)?;
    agree(
        "network namespace",
        namespace(pid, "net"),
        identity.netns_inode,
    )?;
    agree("pid namespace", namespace(pid, "pid"), identity.pidns_inode)?;
    agree(
        "control group's inode",
        group_inode(hierarchies, &identity.cgroup),
        identity.cgroup_inode,
    )?;
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup"))
        .map_err(|cause| format!("control group: {cause}"))?;
    if is_below(&own, &identity.cgroup) {
        Ok(())
    } else {
        Err(format!("control group: not below {}", identity.cgroup))
    }
}

fn agree<T: PartialEq + std::fmt::Display>(
    what: &str,
    seen: io::Result<T>,
    known: T,
) -> Result<(), String> {
    match seen {
        Ok(seen) if seen == known => Ok(()),
        Ok(seen) => Err(format!("{what}: {seen}, and {known} is on record")),
        Err(cause) => Err(format!("{what}: {cause}")),
    }
}

/// Whether the v2 line of a `/proc/PID/cgroup` names `group` or one below.
fn is_below(lines: &str, group: &str) -> bool {
    lines
        .lines()
        .filter_map(|line| line.strip_prefix("0::"))
        .any(|path| format!("{path}/").contains(&format!("/{group}/")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use hutch_protocol::{BootId, Generation, ProjectId};

    use super::*;
    use crate::SandboxKey;

    /// This process, told as a boot.
    fn own() -> (BootIdentity, Hierarchies) {
        let hierarchies = Hierarchies::detect().unwrap();
        let pid = std::process::id();
        let lines = fs::read_to_string("/proc/self/cgroup").unwrap();
        let line = lines.lines().find_map(|line| line.strip_prefix("0::/"));
        let cgroup = line.unwrap_or_default().to_owned();
        let identity = BootIdentity {
            boot: BootId::random(),
            sandbox: SandboxKey {
                project: ProjectId::random(),
                name: "own".parse().unwrap(),
            },
            machine: machine().unwrap(),
            pid,
            start_time: process::start_time(pid).unwrap(),
            cgroup_inode: group_inode(&hierarchies, &cgroup).unwrap(),
            cgroup,
            netns_inode: namespace(pid, "net").unwrap(),
            pidns_inode: namespace(pid, "pid").unwrap(),
            generation: Generation(1),
            data_dir: "0".repeat(16),
        };
        (identity, hierarchies)
    }

    #[test]
    fn each_difference_alone_is_enough_to_refuse() {
        let (own, hierarchies) = own();
        let group_counts = !own.cgroup.is_empty();
        if group_counts {
            assert_eq!(check(&own, &hierarchies), Ok(()));
        }
        type Change = (&'static str, fn(&mut BootIdentity));
        let wrong: [Change; 6] = [
            ("machine", |id| id.machine = "another".into()),
            ("start time", |id| id.start_time += 1),
            ("network", |id| id.netns_inode += 1),
            ("pid namespace", |id| id.pidns_inode += 1),
            ("inode", |id| id.cgroup_inode += 1),
            ("start time", |id| id.pid = u32::MAX >> 2),
        ];
        for (words, change) in wrong {
            let mut other = own.clone();
            change(&mut other);
            let refusal = check(&other, &hierarchies).unwrap_err();
            assert!(refusal.contains(words), "{words}: {refusal}");
        }
    }

    #[test]
    fn a_group_is_told_from_one_that_starts_alike() {
        let lines = "4:pids:/hutch-a/1\n0::/hutch-a/1-2/daemon\n";
        assert!(is_below(lines, "hutch-a/1-2"));
        assert!(is_below("0::/box/hutch-a/1-2\n", "hutch-a/1-2"));
        assert!(!is_below(lines, "hutch-a/1"));
        assert!(!is_below(lines, "hutch-a/1-23"));
        assert!(!is_below("4:pids:/hutch-a/1\n0::/\n", "hutch-a/1"));
    }
}
