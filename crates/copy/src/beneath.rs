//! Opening what is below a directory: never above it and never through a link.

use crate::{CopyError, names::split};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The mode of a directory that the archive does not describe.
const IMPLIED: Mode = Mode::from_raw_mode(0o755);

pub(crate) fn open(
    base: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let path = if path.is_empty() { b"." } else { path };
    openat2(base, path, flags | OFlags::CLOEXEC, mode, resolve)
}

/// A handle on the directory `path` below `base`. What is missing of it is made.
pub(crate) fn directory(base: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, CopyError> {
    let handle = |path: &[u8]| open(base, path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty());
    let failed = |error| match error {
        Errno::LOOP => CopyError::refused(path, "leads through a symbolic link"),
        Errno::NOTDIR => CopyError::refused(path, "leads through what is no directory"),
        error => CopyError::io(path, error),
    };
    match handle(path) {
        Err(Errno::NOENT) => {}
        opened => return opened.map_err(failed),
    }
    let (above, name) = split(path);
    let parent = directory(base, above)?;
    match rustix::fs::mkdirat(&parent, name, IMPLIED) {
        Ok(()) | Err(Errno::EXIST) => handle(path).map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

/// What has this name, links not followed; `None` when nothing has.
pub(crate) fn kind(parent: BorrowedFd<'_>, name: &[u8]) -> Result<Option<FileType>, Errno> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A new entry under a name of its own, which takes its final name once it is
/// whole. Dropped before that it leaves no trace.
#[derive(Debug)]
pub(crate) struct Fresh<'a> {
    parent: &'a OwnedFd,
    name: String,
}

impl<'a> Fresh<'a> {
    pub(crate) fn new(parent: &'a OwnedFd) -> Result<Self, Errno> {
        let mut random = [0_u8; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let name = format!(".hutch-{:016x}", u64::from_ne_bytes(random));
        Ok(Self { parent, name })
    }

    pub(crate) fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Gives it its name, in place of what had it before, unless that is a
    /// directory.
    pub(crate) fn rename(self, to: &[u8]) -> Result<(), Errno> {
        if kind(self.parent.as_fd(), to)? == Some(FileType::Directory) {
            return Err(Errno::ISDIR);
        }
        // Two names of one file: the kernel renames nothing, and dropping this
        // takes the new one away.
        rustix::fs::renameat(self.parent, &self.name, self.parent, to)
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        // Gone by rename when all went well.
        let _ = rustix::fs::unlinkat(self.parent, &self.name, AtFlags::empty());
    }
}
