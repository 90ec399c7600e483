//! What a new process does between its clone and its program.

use super::launch::{Launch, Stage};
use super::report::{Report, last_errno};
use super::slice;
use rustix::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};

/// Everything the child needs, prepared before the clone.
pub(super) struct Plan<'a> {
    pub(super) launch: &'a Launch,
    /// stdin, stdout, stderr and perhaps the script.
    pub(super) descriptors: &'a [OwnedFd],
    /// The system-call filter of commands, empty for none.
    pub(super) filter: &'a [libc::sock_filter],
    /// The text for `oom_score_adj`.
    pub(super) oom_score: &'a [u8],
    pub(super) report: &'a Report,
}

/// The descriptor that the script of a long command has in the process.
const SCRIPT: i32 = 3;

/// Turns the calling process into the command. Returns only by ending the process,
/// after writing the reason to the report.
pub(super) fn become_command(plan: &Plan<'_>, grouped: bool) -> ! {
    let (stage, errno) = match prepare(plan, grouped) {
        Ok(()) => (Stage::Exec, execute(plan.launch)),
        Err(failure) => failure,
    };
    plan.report.set(stage, errno);
    // SAFETY: ends this process without running handlers of the process it was copied from.
    unsafe { libc::_exit(127) }
}

fn prepare(plan: &Plan<'_>, grouped: bool) -> Result<(), (Stage, Errno)> {
    rustix::process::setsid().map_err(|e| (Stage::Clone, e))?;
    raise_oom_score(plan.oom_score);
    slice::make_usual();
    if !grouped {
        // Without a group the tree is found by descent, so orphans must stay below the command.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::Pid::INIT));
    }
    place_streams(plan.descriptors).map_err(|e| (Stage::Streams, e))?;
    rustix::process::chdir(plan.launch.cwd.as_c_str()).map_err(|e| (Stage::Directory, e))?;
    install_filter(plan.filter).map_err(|e| (Stage::Filter, e))
}

pub(super) fn raise_oom_score(score: &[u8]) {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(c"/proc/self/oom_score_adj", flags, Mode::empty()) {
        let _ = rustix::io::write(&file, score);
    }
}

/// Puts the streams on 0, 1, 2 and the script on 3, and closes everything else.
/// The starter has 0, 1 and 2 open, so no source is among them.
fn place_streams(descriptors: &[OwnedFd]) -> Result<(), Errno> {
    let script = match descriptors.get(3) {
        // Out of the way of its own target, and owned by nobody from here on.
        Some(script) => Some(rustix::io::fcntl_dupfd_cloexec(script, SCRIPT + 1)?.into_raw_fd()),
        None => None,
    };
    for (source, target) in descriptors.iter().take(3).zip([0, 1, 2]) {
        duplicate(source.as_raw_fd(), target)?;
    }
    if let Some(script) = script {
        duplicate(script, SCRIPT)?;
    }
    let first = if script.is_some() { SCRIPT + 1 } else { SCRIPT };
    // SAFETY: the process is about to execute; nothing uses the closed descriptors
    // again, and their owners are never dropped. On a kernel without this call
    // every descriptor of ours is closed by the execution anyway.
    unsafe { libc::syscall(libc::SYS_close_range, first.cast_unsigned(), u32::MAX, 0) };
    Ok(())
}

fn duplicate(source: RawFd, target: RawFd) -> Result<(), Errno> {
    // SAFETY: dup2 replaces `target`, which this copy of the starter owns and never uses again.
    if unsafe { libc::dup2(source, target) } == target {
        Ok(())
    } else {
        Err(last_errno())
    }
}

fn install_filter(filter: &[libc::sock_filter]) -> Result<(), Errno> {
    if filter.is_empty() {
        return Ok(());
    }
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?,
        filter: filter.as_ptr().cast_mut(),
    };
    let install = || {
        // SAFETY: `program` points at `filter`, alive for the call; the kernel only reads it.
        let result = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                0,
                &raw const program,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(last_errno())
        }
    };
    match install() {
        // Neither privileged nor bound by no_new_privs: be bound, then try again.
        Err(Errno::ACCESS) => {
            rustix::thread::set_no_new_privs(true)?;
            install()
        }
        other => other,
    }
}

/// Executes the program; returns the reason when it cannot.
fn execute(launch: &Launch) -> Errno {
    let Some(name) = launch.argv.first() else {
        return Errno::INVAL;
    };
    let argv = pointers(&launch.argv);
    let envp = pointers(&launch.env);
    let mut reason = Errno::NOENT;
    for candidate in candidates(name, &launch.env) {
        // SAFETY: the path is a C string; both vectors hold pointers to live C strings and end in null.
        unsafe { libc::execve(candidate.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
        match last_errno() {
            Errno::NOENT | Errno::NOTDIR => {}
            // As shells do: go on looking, but remember that there was something.
            Errno::ACCESS => reason = Errno::ACCESS,
            other => return other,
        }
    }
    reason
}

fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts
        .iter()
        .map(|text| text.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

fn candidates(name: &CStr, env: &[CString]) -> Vec<CString> {
    let name = name.to_bytes();
    if name.contains(&b'/') {
        return CString::new(name).into_iter().collect();
    }
    let path = env
        .iter()
        .find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
        .split(|byte| *byte == b':')
        .filter_map(|directory| {
            let directory: &[u8] = if directory.is_empty() {
                b"."
            } else {
                directory
            };
            CString::new([directory, b"/", name].concat()).ok()
        })
        .collect()
}
