//! Becoming the daemon: descriptors, environment, last privileges, exec.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use rustix::io::FdFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::fork::close_all_but;
use super::seccomp::Filters;
use super::step::Step;
use super::{caps, identity, namespaces, quotas};
use crate::native::process;

/// How many descriptors a process may have open.
const NOFILE: u64 = 16_384;
/// Where descriptors wait before they get their final numbers.
const WAITING: i32 = 64;

/// What the daemon inherits.
pub struct Inherited {
    /// Descriptors 1 and 2: the pipe that the spawner drains.
    pub output: OwnedFd,
    /// Descriptor 3: the listening socket for callers' work.
    pub user: OwnedFd,
    /// Descriptor 4: the listening socket for the server's.
    pub control: OwnedFd,
    /// Descriptor 5: the delegated group.
    pub commands: OwnedFd,
    /// Descriptor 8: the filter for commands.
    pub command_filter: OwnedFd,
    /// Descriptors from [`ATTACH`] on: the opened `cgroup.procs` files that a starter joins
    /// which the daemon forks after it was moved out of them.
    pub attach: Vec<OwnedFd>,
}

/// The first of the descriptors for a later starter's groups.
pub const ATTACH: i32 = 9;

/// Puts the descriptors in their places and closes everything else but
/// `kept`, which close at exec. Returns `kept` at their new numbers.
pub fn place(inherited: Inherited, kept: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    let high = |fd: OwnedFd| rustix::io::fcntl_dupfd_cloexec(&fd, WAITING);
    let kept = kept.into_iter().map(high).collect::<Result<Vec<_>, _>>()?;
    let null = std::fs::File::options()
        .read(true)
        .open("/dev/null")
        .step("open /dev/null")?;
    let mut placed = vec![
        (0, high(null.into())?),
        (1, high(inherited.output.try_clone()?)?),
        (2, high(inherited.output)?),
        (3, high(inherited.user)?),
        (4, high(inherited.control)?),
        (5, high(inherited.commands)?),
        (8, high(inherited.command_filter)?),
    ];
    for (target, fd) in (ATTACH..WAITING).zip(inherited.attach) {
        placed.push((target, high(fd)?));
    }
    let mut open: Vec<i32> = kept.iter().map(AsRawFd::as_raw_fd).collect();
    for (target, fd) in &placed {
        duplicate(fd, *target)?;
        open.push(*target);
    }
    close_all_but(&open);
    // Closed above.
    for (_, fd) in placed {
        let _ = fd.into_raw_fd();
    }
    Ok(kept)
}

fn duplicate(fd: &OwnedFd, target: i32) -> io::Result<()> {
    // SAFETY: `target` is below WAITING, where this process owns nothing that
    // it still uses; wrapping the number lets dup2 replace it, and the wrapper
    // is given up again so that nothing closes it.
    let mut place = unsafe { OwnedFd::from_raw_fd(target) };
    let done = rustix::io::dup2(fd, &mut place);
    let _ = place.into_raw_fd();
    Ok(done?)
}

/// Gives up everything that the sandbox may not have: enters its user
/// namespace as its root, keeps the allowed capabilities and bounds resources.
pub fn drop_privileges(namespace: &OwnedFd, dumpable: bool) -> io::Result<()> {
    namespaces::enter_user(namespace).step("enter the user namespace")?;
    identity::become_root().step("become root inside")?;
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(NOFILE);
    let limit = |value: u64| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    setrlimit(Resource::Nofile, limit(hard.min(NOFILE))).step("limit descriptors")?;
    quotas::bound_rlimits().step("limit queues")?;
    process::bound_core_files().step("limit core files")?;
    caps::drop_others().step("drop capabilities")?;
    rustix::thread::set_no_new_privs(true)?;
    if !dumpable {
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    restore_signals();
    leave_keyring()
}

/// The Rust runtime ignores SIGPIPE, and an ignored signal stays ignored
/// across exec.
fn restore_signals() {
    // SAFETY: SIG_DFL is a valid disposition, and no handler is replaced that
    // anything relies on.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Leaves the host's session keyring for a new one.
fn leave_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: no name is given, so nothing is read.
    let joined = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, 0) };
    let cause = io::Error::last_os_error();
    // A kernel without keyrings has none to leave.
    if joined < 0 && cause.raw_os_error() != Some(libc::ENOSYS) {
        return Err(cause).step("leave the session keyring");
    }
    Ok(())
}

/// Applies the filters and becomes `program`. Returns only on failure.
pub fn become_daemon(
    program: &OwnedFd,
    filters: &Filters,
    environment: &[String],
) -> io::Result<std::convert::Infallible> {
    let strings = |items: &[String]| -> io::Result<Vec<CString>> {
        let one = |item: &String| CString::new(item.as_str()).map_err(io::Error::from);
        items.iter().map(one).collect()
    };
    let arguments = strings(&["sandboxd".to_owned()])?;
    let environment = strings(environment)?;
    let pointers = |items: &[CString]| {
        let mut all: Vec<*const libc::c_char> = items.iter().map(|item| item.as_ptr()).collect();
        all.push(std::ptr::null());
        all
    };
    let (argv, envp) = (pointers(&arguments), pointers(&environment));
    rustix::io::fcntl_setfd(program, FdFlags::CLOEXEC)?;
    filters.apply()?;
    // SAFETY: the path is an empty C string, and both arrays end in a null
    // pointer and point to C strings that outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            envp.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    Err(io::Error::last_os_error())
}
