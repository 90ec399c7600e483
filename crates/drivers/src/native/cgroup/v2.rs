//! The v2 hierarchy: one group to kill or freeze everything, and the group in
//! which the daemon makes one for each command.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::file;

/// How many groups a daemon may make at once.
const GROUPS_MAX: &str = "4224";

/// Hands `commands` to the sandbox's root: making groups below it and moving
/// processes between them, but no limit of its own.
pub fn delegate(slot: &Path, owner: u32) -> io::Result<()> {
    let chown = |path: PathBuf| std::os::unix::fs::chown(path, Some(owner), Some(owner));
    let commands = slot.join("commands");
    chown(commands.clone())?;
    for name in ["cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
        chown(commands.join(name))?;
    }
    // A move between two groups needs the right to write here, in their
    // common ancestor.
    chown(slot.join("cgroup.procs"))
}

/// Bounds the groups below `commands`: one for each process of the largest
/// instance type, and some to spare.
pub fn bound(slot: &Path) -> io::Result<()> {
    let commands = slot.join("commands");
    file::write(&commands.join("cgroup.max.depth"), "2")?;
    file::write(&commands.join("cgroup.max.descendants"), GROUPS_MAX)
}

/// Kills every process of the group, stopped and frozen ones too.
pub fn kill(group: &Path) -> io::Result<()> {
    match file::write(&group.join("cgroup.kill"), "1") {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Whether a process is left in the group.
pub fn is_populated(group: &Path) -> io::Result<bool> {
    match file::field(&group.join("cgroup.events"), "populated") {
        Ok(value) => Ok(value == Some(1)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(cause),
    }
}

/// Freezes the group and waits until every process has stopped. Blocks. On
/// failure the group is thawed again.
pub fn freeze(group: &Path, deadline: Instant) -> io::Result<()> {
    file::write(&group.join("cgroup.freeze"), "1")?;
    let events = group.join("cgroup.events");
    loop {
        match file::field(&events, "frozen") {
            Ok(Some(1)) => return Ok(()),
            Ok(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_micros(200)),
            Ok(_) => {
                thaw(group)?;
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(cause) => {
                let _ = thaw(group);
                return Err(cause);
            }
        }
    }
}

/// Undoes [`freeze`].
pub fn thaw(group: &Path) -> io::Result<()> {
    file::write(&group.join("cgroup.freeze"), "0")
}

/// The process ids in the group itself, as the caller's pid namespace numbers
/// them.
pub fn processes(group: &Path) -> io::Result<Vec<i32>> {
    let text = fs::read_to_string(group.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}
