//! The user namespace of a sandbox.
//!
//! It is made by a throwaway child under the sandbox's own host id, since the
//! kernel charges quotas such as inotify's to the maker. No namespace can be
//! made inside it: their counts are set to nothing.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::thread::UnshareFlags;

use super::fork::{self, Side};
use super::step::Step;
use super::{identity, namespaces, quotas, uid_range::SIZE};

const KINDS: [&str; 8] = ["user", "mnt", "pid", "uts", "ipc", "net", "cgroup", "time"];

/// Makes the namespace whose ids 0–65535 are the host's from `base` on.
/// `/proc` must be that of the caller's pid namespace.
pub fn make(base: u32) -> io::Result<OwnedFd> {
    let (ready, mut tell_ready) = io::pipe()?;
    let (done, tell_done) = io::pipe()?;
    match fork::fork(0, None)? {
        Side::Child => {
            let made = become_owner(base).is_ok();
            let _ = tell_ready.write_all(if made { b"+" } else { b"-" });
            // Lives until the parent has what it needs.
            drop(tell_done);
            let _ = { done }.read(&mut [0]);
            fork::leave(0)
        }
        Side::Parent { pid, .. } => {
            drop((tell_ready, done));
            let made = fetch(ready, pid.as_raw_nonzero().get(), base);
            drop(tell_done);
            rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())?;
            made
        }
    }
}

fn become_owner(base: u32) -> io::Result<()> {
    identity::keep_capabilities()?;
    quotas::bound_rlimits()?;
    identity::act_as(base)?;
    namespaces::unshare(UnshareFlags::NEWUSER)?;
    for kind in KINDS {
        fs::write(format!("/proc/sys/user/max_{kind}_namespaces"), "0")?;
    }
    quotas::bound_watches()
}

fn fetch(mut ready: io::PipeReader, pid: i32, base: u32) -> io::Result<OwnedFd> {
    let mut byte = [0];
    ready.read_exact(&mut byte)?;
    if &byte != b"+" {
        return Err(io::Error::other(
            "the user namespace could not be made or closed to others",
        ));
    }
    let map = format!("0 {base} {SIZE}");
    fs::write(format!("/proc/{pid}/uid_map"), &map).step("write uid_map")?;
    fs::write(format!("/proc/{pid}/gid_map"), &map).step("write gid_map")?;
    let namespace = fs::File::open(format!("/proc/{pid}/ns/user")).step("open ns/user")?;
    Ok(namespace.into())
}
