//! Control groups (version 2), one a call, below the commands group.

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The commands group and those call groups whose call is over but which still
/// hold processes. Their number is bounded by the number of processes.
#[derive(Debug)]
pub(in super::super) struct Groups {
    directory: OwnedFd,
    lingering: Mutex<Vec<String>>,
}

impl Groups {
    pub(in super::super) fn new(directory: OwnedFd) -> Self {
        Self {
            directory,
            lingering: Mutex::default(),
        }
    }

    /// Removes the group of a call that never ran.
    pub(in super::super) fn discard(&self, call: u64) {
        self.remove_later(format!("c{call}"));
    }

    /// Removes those groups that have become empty.
    pub(in super::super) fn sweep(&self) {
        let mut lingering = self
            .lingering
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        lingering.retain(|name| !self.remove(name));
    }

    /// The commands group.
    pub(in super::super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// The groups of calls that are over but left processes behind.
    pub(in super::super) fn lingering(&self) -> Vec<String> {
        self.sweep();
        let lingering = self.lingering.lock();
        lingering.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remove_later(&self, name: String) {
        if self.remove(&name) {
            return;
        }
        let mut lingering = self
            .lingering
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !lingering.contains(&name) {
            lingering.push(name);
        }
    }

    /// Whether the group is gone now.
    fn remove(&self, name: &str) -> bool {
        matches!(
            rustix::fs::unlinkat(&self.directory, name, AtFlags::REMOVEDIR),
            Ok(()) | Err(Errno::NOENT)
        )
    }

    fn open(&self, name: &str, file: &str, flags: OFlags) -> Result<File, Errno> {
        let path = format!("{name}/{file}");
        rustix::fs::openat(
            &self.directory,
            path,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map(File::from)
    }
}

/// The group of one call.
#[derive(Debug)]
pub(super) struct Group {
    groups: Arc<Groups>,
    name: String,
}

impl Group {
    pub(super) fn new(groups: Arc<Groups>, call: u64) -> Self {
        Self::named(groups, format!("c{call}"))
    }

    pub(super) fn named(groups: Arc<Groups>, name: String) -> Self {
        Self { groups, name }
    }

    /// The processes in it; zombies are not among them once they are reaped.
    pub(super) fn members(&self) -> io::Result<Vec<i32>> {
        // `cgroup.events` is the kernel's own word on emptiness; `cgroup.procs` may still
        // list a dead leader.
        if let Some(events) = self.read("cgroup.events")?
            && events.lines().any(|line| line == "populated 0")
        {
            return Ok(Vec::new());
        }
        let listed = self.read("cgroup.procs")?;
        Ok(listed
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect())
    }

    pub(super) fn signal(&self, signal: i32) -> io::Result<()> {
        for pid in self.members()? {
            send(pid, signal);
        }
        Ok(())
    }

    pub(super) fn kill(&self) -> io::Result<()> {
        match self.groups.open(&self.name, "cgroup.kill", OFlags::WRONLY) {
            Ok(mut file) => file.write_all(b"1"),
            // The group is gone, so all are; or the kernel is older than 5.14.
            Err(_) => self.signal(libc::SIGKILL),
        }
    }

    pub(super) fn release(&self) {
        self.groups.remove_later(self.name.clone());
    }

    /// A file's content; `None` when the group is gone.
    fn read(&self, file: &str) -> io::Result<Option<String>> {
        let mut file = match self.groups.open(&self.name, file, OFlags::RDONLY) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NODEV) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut text = String::new();
        match file.read_to_string(&mut text) {
            Ok(_) => Ok(Some(text)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Sends a signal; a process that is gone is no error.
pub(super) fn send(pid: i32, signal: i32) {
    let Some((pid, signal)) = Pid::from_raw(pid).zip(Signal::from_named_raw(signal)) else {
        return;
    };
    let _ = rustix::process::kill_process(pid, signal);
}
