//! What a boot is made of: its process, its volume's tree, its sockets.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use hutch_images::HostImage;
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::Pid;

use super::stage_dir;
use crate::native::cgroup::SlotGroups;
use crate::native::socket_path;
use crate::native::spawner::fork::{self, Side};
use crate::native::spawner::mounts;
use crate::native::spawner::parked::{self, Plan};
use crate::native::spawner::setup::Setup;
use crate::native::spawner::step::Step;

/// How many connections may wait for the daemon to accept them.
const BACKLOG: i32 = 128;

/// Forks a process that becomes parked, in a fresh pid namespace and born in
/// its v2 group.
pub fn fork_parked(
    setup: &Setup,
    image: &HostImage,
    groups: &SlotGroups,
    base: u32,
) -> io::Result<(OwnedFd, Pid, OwnedFd)> {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let born_in = rustix::fs::open(groups.v2(), flags, Mode::empty())?;
    match fork::fork(libc::CLONE_NEWPID, Some(born_in.as_fd())).step("fork")? {
        Side::Parent { pid, pidfd } => {
            rustix::io::ioctl_fionbio(&ours, true)?;
            Ok((ours, pid, pidfd))
        }
        Side::Child => parked::run(Plan {
            groups,
            base,
            image,
            stage: &stage_dir(setup),
            filters: &setup.filters,
            control: theirs,
        }),
    }
}

/// A detached copy of the mount at a directory that the server names. Its own
/// last part may not be a link.
pub fn directory(path: &Path) -> io::Result<OwnedFd> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    mounts::copy(path)
}

/// Listens in a boot's directory.
pub fn listener(place: &Path, name: &str) -> io::Result<OwnedFd> {
    let (_dir, address) = socket_path::address(place, name)?;
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}
