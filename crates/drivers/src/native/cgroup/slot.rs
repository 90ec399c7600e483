//! All groups of one boot, over every hierarchy.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use super::{Hierarchies, Limits, file, v1, v2};
use crate::Usage;

/// The groups of one boot.
#[derive(Clone, Debug)]
pub struct SlotGroups {
    hierarchies: Hierarchies,
    v2: PathBuf,
    /// The group's name, relative to each hierarchy.
    group: String,
}

const HALVES: [&str; 2] = ["daemon", "commands"];

impl SlotGroups {
    /// Names the groups `group` without making them.
    pub fn named(hierarchies: Hierarchies, group: String) -> io::Result<Self> {
        let v2 = hierarchies.v2.as_ref().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "no cgroup v2 hierarchy is mounted",
            )
        })?;
        let v2 = v2.join(&group);
        Ok(Self {
            hierarchies,
            v2,
            group,
        })
    }

    /// The group's name, relative to each hierarchy.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Makes the groups and hands the delegated one to `owner`.
    pub fn make(&self, owner: u32) -> io::Result<()> {
        for slot in self.paths() {
            if let Some(parent) = slot.parent() {
                file::make(parent)?;
            }
            file::make(&slot)?;
            for half in HALVES {
                file::make(&slot.join(half))?;
            }
        }
        v2::bound(&self.v2)?;
        v2::delegate(&self.v2, owner)
    }

    /// Writes the limits of the instance type.
    pub fn limit(&self, limits: &Limits) -> io::Result<()> {
        v1::limit(&self.hierarchies, &self.group, limits)
    }

    /// The `cgroup.procs` files that a boot's first process enters: the v1
    /// `commands` halves.
    pub fn birth_places(&self) -> Vec<PathBuf> {
        self.v1_halves("commands")
    }

    /// The v1 groups of commands with their controllers' names, to be shown
    /// inside, where programs size themselves by them.
    pub fn shown(&self) -> Vec<(&'static str, PathBuf)> {
        let place = |(name, mount): (&&'static str, &PathBuf)| {
            (*name, mount.join(&self.group).join("commands"))
        };
        self.hierarchies.v1.iter().map(place).collect()
    }

    /// The `cgroup.procs` files that PID 1 moves to once its starter is born.
    pub fn daemon_places(&self) -> Vec<PathBuf> {
        self.v1_halves("daemon")
    }

    fn v1_halves(&self, half: &str) -> Vec<PathBuf> {
        let mounts = self.hierarchies.v1_mounts();
        let place =
            |mount: &std::path::Path| mount.join(&self.group).join(half).join("cgroup.procs");
        mounts.into_iter().map(place).collect()
    }

    /// The v2 group of the whole boot.
    pub fn v2(&self) -> &std::path::Path {
        &self.v2
    }

    /// The processes in the v1 `commands` half.
    pub fn commands(&self) -> io::Result<Vec<i32>> {
        match self.hierarchies.v1.get("pids") {
            Some(mount) => v2::processes(&mount.join(&self.group).join("commands")),
            None => Ok(Vec::new()),
        }
    }

    /// Kills every process of the boot.
    pub fn kill(&self) -> io::Result<()> {
        v2::kill(&self.v2)
    }

    /// Freezes every process; blocks until `deadline` at most.
    pub fn freeze(&self, deadline: Instant) -> io::Result<()> {
        v2::freeze(&self.v2, deadline)
    }

    /// Undoes [`SlotGroups::freeze`].
    pub fn thaw(&self) -> io::Result<()> {
        v2::thaw(&self.v2)
    }

    /// What the boot uses.
    pub fn usage(&self) -> io::Result<Usage> {
        v1::usage(&self.hierarchies, &self.group)
    }

    /// How many processes the kernel killed for memory.
    pub fn oom_kills(&self) -> u64 {
        v1::oom_kills(&self.hierarchies, &self.group)
    }

    /// Removes the groups, or says that one is busy still.
    pub fn remove_once(&self) -> io::Result<()> {
        self.paths()
            .iter()
            .try_for_each(|slot| file::remove_once(slot))
    }

    fn paths(&self) -> Vec<PathBuf> {
        let mounts = self.hierarchies.v1_mounts();
        let mut paths: Vec<PathBuf> = mounts.iter().map(|mount| mount.join(&self.group)).collect();
        paths.push(self.v2.clone());
        paths
    }
}

/// Kills and removes every group below `group` but the ones that are `kept`:
/// what a dead spawner left. Without any left, `group` goes, too.
pub fn reclaim(
    hierarchies: &Hierarchies,
    group: &str,
    kept: &[&str],
    deadline: Instant,
) -> io::Result<()> {
    if let Some(mount) = &hierarchies.v2 {
        let all = mount.join(group);
        for slot in others(&all, kept) {
            v2::kill(&slot)?;
            while v2::is_populated(&slot)? {
                if Instant::now() > deadline {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            file::remove(&slot, deadline)?;
        }
        if kept.is_empty() {
            file::remove(&all, deadline)?;
        }
    }
    for mount in hierarchies.v1_mounts() {
        let all = mount.join(group);
        for slot in others(&all, kept) {
            // A process that entered v1 and had not yet entered v2.
            for dir in walk(&slot) {
                for pid in v2::processes(&dir).unwrap_or_default() {
                    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                }
            }
            file::remove(&slot, deadline)?;
        }
        if kept.is_empty() {
            file::remove(&all, deadline)?;
        }
    }
    Ok(())
}

/// The groups below `all` that are not kept.
fn others(all: &std::path::Path, kept: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|entry| {
            let name = entry.file_name();
            !name.to_str().is_some_and(|name| kept.contains(&name))
        })
        .map(|entry| entry.path())
        .collect()
}

fn walk(dir: &std::path::Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_path_buf()];
    let mut next = 0;
    while let Some(dir) = found.get(next).cloned() {
        next += 1;
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.push(entry.path());
            }
        }
    }
    found
}
