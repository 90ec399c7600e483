//! Forking. The spawner has one thread, so a child may do anything.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::Pid;

/// Outside of the 32 bits that the libc crate has for flags.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Which of the two processes goes on.
pub enum Side {
    /// The parent, with the child's id and a pidfd.
    Parent {
        /// The child.
        pid: Pid,
        /// Its pidfd.
        pidfd: OwnedFd,
    },
    /// The child. It ends by [`leave`], so that it runs no destructor of its
    /// parent.
    Child,
}

/// Forks. `flags` are of `clone`; `group` is the v2 group to be born in.
pub fn fork(flags: i32, group: Option<BorrowedFd<'_>>) -> io::Result<Side> {
    let mut pidfd: libc::c_int = -1;
    let mut args = libc::clone_args {
        flags: u64::from(flags.cast_unsigned()) | libc::CLONE_PIDFD as u64,
        pidfd: (&raw mut pidfd) as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    };
    if let Some(group) = group {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = group.as_raw_fd() as u64;
    }
    // SAFETY: without CLONE_VM the child gets a copy of everything, as with
    // fork(2); this process has a single thread, so no lock is held in the
    // copy. `args` is whole and `pidfd` outlives the call.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut args,
            size_of::<libc::clone_args>(),
        )
    };
    match pid {
        0 => Ok(Side::Child),
        pid if pid > 0 => {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            // SAFETY: on success the kernel stored a new descriptor that
            // nothing else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = pid.ok_or_else(|| io::Error::other("clone3 gave no process id"))?;
            Ok(Side::Parent { pid, pidfd })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends the calling process at once.
pub fn leave(code: i32) -> ! {
    // SAFETY: _exit takes any number and does not return.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor but the standard three and `kept`.
pub fn close_all_but(kept: &[i32]) {
    let mut kept: Vec<u32> = kept
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .collect();
    kept.extend([0, 1, 2]);
    kept.sort_unstable();
    kept.dedup();
    let mut first = 0;
    for fd in kept {
        if first < fd {
            close_range(first, fd - 1);
        }
        first = fd + 1;
    }
    close_range(first, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    // SAFETY: the caller is a fresh child that never uses or drops the owners
    // of these descriptors: it ends by `leave` or by becoming a program.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}
