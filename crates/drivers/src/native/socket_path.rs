//! Unix sockets at paths of any length.
//!
//! An address holds 107 bytes of path, so the directory is opened and named by
//! its descriptor. That also keeps the host's path out of what the sandbox
//! can ask its own socket for.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::net::SocketAddrUnix;

/// The address of `name` in `dir`. It holds while the descriptor is open.
pub fn address(dir: &Path, name: &str) -> io::Result<(OwnedFd, SocketAddrUnix)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}/{name}", dir.as_raw_fd());
    Ok((dir, SocketAddrUnix::new(path.as_str())?))
}
