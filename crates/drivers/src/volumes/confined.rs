//! Opening directories so that no name or link can lead elsewhere.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, chmodat, mkdirat, openat2};
use rustix::io::{Errno, Result};

/// Opens the directory `path` below `dir`: no links, no other file system, no
/// way up.
pub fn open_dir(dir: impl AsFd, path: &str) -> Result<OwnedFd> {
    openat2(
        dir,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
    )
}

/// Makes the directory `name` in `dir` with exactly this mode, if it is not
/// there, and opens it.
pub fn make_dir(dir: impl AsFd, name: &str, mode: u32) -> Result<OwnedFd> {
    let mode = Mode::from_raw_mode(mode);
    match mkdirat(dir.as_fd(), name, mode) {
        // The process's umask must not decide.
        Ok(()) => chmodat(dir.as_fd(), name, mode, AtFlags::empty())?,
        Err(Errno::EXIST) => {}
        Err(cause) => return Err(cause),
    }
    open_dir(dir, name)
}
