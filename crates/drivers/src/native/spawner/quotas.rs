//! What of the kernel's own tables one sandbox may take.
//!
//! Some are counted for each user namespace with the limits that its maker had,
//! some for each ipc namespace. Kernel memory behind them is charged to the
//! sandbox as well, but outlives the process that took it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::step::Step;

/// Limits that hold for the sandbox as a whole if its user namespace is made
/// under them, and for each process of it as well.
const RLIMITS: [(Resource, u64); 3] = [
    // Queued signals and timers.
    (Resource::Sigpending, 16_384),
    // Bytes in message queues.
    (Resource::Msgqueue, 819_200),
    // Bytes of locked memory.
    (Resource::Memlock, 64 * 1024 * 1024),
];

/// The parts of inotify and fanotify, for the whole namespace.
const WATCHES: [(&str, &str); 4] = [
    ("inotify_instances", "128"),
    ("inotify_watches", "65536"),
    ("fanotify_groups", "0"),
    ("fanotify_marks", "0"),
];

/// System V and POSIX queues, semaphores and segments, for the whole
/// namespace. A queue holds 16 KiB at most.
const IPC: [(&str, &str); 5] = [
    ("kernel/msgmni", "256"),
    ("kernel/shmmni", "1024"),
    // A set, all, a call, sets.
    ("kernel/sem", "1000 32000 500 512"),
    ("fs/mqueue/queues_max", "64"),
    ("kernel/shmall", "0"),
];

/// The size of a page, on the only architecture that there is a filter for.
const PAGE: u64 = 4096;

/// Bounds the calling process and what it makes. A lower limit of the host
/// stays.
pub fn bound_rlimits() -> io::Result<()> {
    for (resource, most) in RLIMITS {
        let most = getrlimit(resource)
            .maximum
            .map_or(most, |hard| hard.min(most));
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit)?;
    }
    Ok(())
}

/// Bounds the caller's fresh user namespace.
pub fn bound_watches() -> io::Result<()> {
    for (name, most) in WATCHES {
        write_if_there(&format!("/proc/sys/user/max_{name}"), most)?;
    }
    Ok(())
}

/// Bounds the caller's fresh ipc namespace, and gives the file by which shared
/// memory is allowed once it is known how much: it can be used after
/// `/proc/sys` was closed.
pub fn bound_ipc() -> io::Result<Option<File>> {
    for (name, most) in IPC {
        write_if_there(&format!("/proc/sys/{name}"), most)?;
    }
    match File::options().write(true).open("/proc/sys/kernel/shmall") {
        Ok(file) => Ok(Some(file)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause).step("open kernel/shmall"),
    }
}

/// Allows System V shared memory of so many bytes in all.
pub fn allow_shm(shmall: Option<File>, bytes: u64) -> io::Result<()> {
    let pages = bytes / PAGE;
    match shmall {
        Some(mut file) => file.write_all(pages.to_string().as_bytes()),
        None => Ok(()),
    }
}

/// A kernel that was built without one has nothing to bound.
fn write_if_there(path: &str, value: &str) -> io::Result<()> {
    if Path::new(path).exists() {
        fs::write(path, value).step(path)
    } else {
        Ok(())
    }
}
