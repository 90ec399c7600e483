//! Opening what is below a directory, never above it, through a link or on
//! another filesystem.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// Opens one name, or a few, below `parent`.
pub(crate) fn open(
    parent: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    openat2(parent, path, flags | OFlags::CLOEXEC, mode, resolve)
}

/// Opens a directory below `parent` to list it.
pub(crate) fn directory(parent: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    quietly(OFlags::RDONLY | OFlags::DIRECTORY, |flags| {
        open(parent, path, flags, Mode::empty())
    })
}

/// Opens a regular file below `parent` to read it. What turns out to be
/// something else does not block.
pub(crate) fn file(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    quietly(flags, |flags| open(parent, name, flags, Mode::empty()))
}

/// A handle on whatever has this name, without opening it.
pub(crate) fn handle(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    open(parent, name, flags, Mode::empty())
}

/// Opens a directory many levels below `root`: the kernel takes at most 4,096
/// bytes of path at once.
pub(crate) fn deep_directory(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    const AT_ONCE: usize = 4000;
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let mut at = open(root, b".", flags, Mode::empty())?;
    let mut rest = path;
    while !rest.is_empty() {
        let cut = match rest.len() {
            0..=AT_ONCE => rest.len(),
            _ => rest[..AT_ONCE]
                .iter()
                .rposition(|byte| *byte == b'/')
                .ok_or(Errno::NAMETOOLONG)?,
        };
        use std::os::fd::AsFd;
        at = open(at.as_fd(), &rest[..cut], flags, Mode::empty())?;
        rest = rest.get(cut + 1..).unwrap_or_default();
    }
    Ok(at)
}

/// Reading leaves no trace in the access time where the kernel allows that: to
/// the owner and to root.
fn quietly(
    flags: OFlags,
    open: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        opened => opened,
    }
}
