//! Making the process: in the call's own control group where there is one.

use super::report::last_errno;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

/// From `linux/sched.h`; the `libc` constant is too narrow for it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Which side of the clone returned.
pub(super) enum Side {
    /// In the new process.
    Child {
        /// Whether it is in a group of its own.
        grouped: bool,
    },
    /// In the starter, after the child has executed its program or ended.
    Parent {
        /// The child.
        pid: Pid,
        /// Whether it is in a group of its own.
        grouped: bool,
    },
}

/// Makes the groups of calls, each a call ahead: making one takes longer than cloning.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    directory: &'a OwnedFd,
    ahead: Option<(u64, OwnedFd)>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(directory: &'a OwnedFd) -> Self {
        Self {
            directory,
            ahead: None,
        }
    }

    /// Makes the group that the call after `call` will most likely ask for.
    pub(super) fn make_ahead(&mut self, call: u64) {
        let next = call.wrapping_add(1);
        self.ahead = self.make(next).map(|group| (next, group));
    }

    fn take(&mut self, call: u64) -> Option<OwnedFd> {
        match self.ahead.take() {
            Some((made, group)) if made == call => return Some(group),
            Some((made, _)) => self.remove(made),
            None => {}
        }
        self.make(call)
    }

    fn make(&self, call: u64) -> Option<OwnedFd> {
        let name = group_name(call);
        match rustix::fs::mkdirat(self.directory, name.as_str(), Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(_) => return None,
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(self.directory, name.as_str(), flags, Mode::empty()).ok()
    }

    fn remove(&self, call: u64) {
        let _ = rustix::fs::unlinkat(
            self.directory,
            group_name(call).as_str(),
            AtFlags::REMOVEDIR,
        );
    }
}

/// The name of the control group of call `call`, below the commands group.
fn group_name(call: u64) -> String {
    format!("c{call}")
}

/// Clones this process as a child of PID 1, into the group of `call` when it can be made,
/// and into the starter's own groups otherwise.
///
/// The starter is suspended until the child executes or ends (`CLONE_VFORK`; the
/// memory is copied, not shared), so a failure report is complete when this returns.
pub(super) fn clone_child(groups: Option<&mut Groups<'_>>, call: u64) -> Result<Side, Errno> {
    let Some(groups) = groups else {
        return plain_clone();
    };
    let Some(group) = groups.take(call) else {
        return plain_clone();
    };
    match clone3_into(&group) {
        // The kernel has no clone3, a filter hides it, or the group does not take processes.
        Err(
            Errno::NOSYS
            | Errno::INVAL
            | Errno::PERM
            | Errno::ACCESS
            | Errno::BUSY
            | Errno::OPNOTSUPP
            | Errno::BADF,
        ) => {
            groups.remove(call);
            plain_clone()
        }
        other => other,
    }
}

fn clone3_into(group: &OwnedFd) -> Result<Side, Errno> {
    let flags =
        CLONE_INTO_CGROUP | u64::from((libc::CLONE_PARENT | libc::CLONE_VFORK).cast_unsigned());
    let arguments = libc::clone_args {
        flags,
        pidfd: 0,
        child_tid: 0,
        parent_tid: 0,
        // With CLONE_PARENT the signal is the starter's own, SIGCHLD.
        exit_signal: 0,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: u64::from(group.as_fd().as_raw_fd().cast_unsigned()),
    };
    // SAFETY: `arguments` is a whole clone_args that outlives the call. Without CLONE_VM and
    // with no stack the child continues on a copy of this stack, like fork; this process has
    // one thread, so the copy is consistent.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const arguments,
            size_of::<libc::clone_args>(),
        )
    };
    side(result, true)
}

fn plain_clone() -> Result<Side, Errno> {
    let flags = i64::from(libc::CLONE_PARENT | libc::CLONE_VFORK | libc::SIGCHLD);
    // SAFETY: as above: no CLONE_VM and no new stack, so this is a fork of a process with one thread.
    let result = unsafe { libc::syscall(libc::SYS_clone, flags, 0_i64, 0_i64, 0_i64, 0_i64) };
    side(result, false)
}

fn side(result: i64, grouped: bool) -> Result<Side, Errno> {
    match i32::try_from(result) {
        Ok(0) => Ok(Side::Child { grouped }),
        Ok(pid) if pid > 0 => match Pid::from_raw(pid) {
            Some(pid) => Ok(Side::Parent { pid, grouped }),
            None => Err(Errno::INVAL),
        },
        _ => Err(last_errno()),
    }
}
