//! The directories from the root of a tree down to one, open.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fstat};
use rustix::io::Errno;

use super::beneath;

/// How many descriptors a stack holds besides that of the root. Above that the
/// upper ones are closed, and opened again on the way back.
const HELD: usize = 64;

/// The directories from the root of a tree down to one. Any depth takes a
/// bounded number of descriptors and no recursion.
#[derive(Debug)]
pub(crate) struct Stack<T> {
    levels: Vec<Level<T>>,
}

#[derive(Debug)]
struct Level<T> {
    fd: Option<OwnedFd>,
    identity: (u64, u64),
    name: Vec<u8>,
    value: T,
}

impl<T> Stack<T> {
    pub(crate) fn new(root: OwnedFd, value: T) -> Result<Self, Errno> {
        let mut stack = Self { levels: Vec::new() };
        stack.push(Vec::new(), root, value)?;
        Ok(stack)
    }

    /// How many directories; the root alone is 1.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The innermost directory, unless it has moved away meanwhile.
    pub(crate) fn top(&self) -> Option<BorrowedFd<'_>> {
        self.levels.last()?.fd.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn root(&self) -> Option<BorrowedFd<'_>> {
        self.levels.first()?.fd.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn value(&mut self) -> Option<&mut T> {
        self.levels.last_mut().map(|level| &mut level.value)
    }

    /// Goes down into `fd`, which is `name` in the innermost directory.
    pub(crate) fn push(&mut self, name: Vec<u8>, fd: OwnedFd, value: T) -> Result<(), Errno> {
        let identity = identity(fd.as_fd())?;
        self.levels.push(Level {
            fd: Some(fd),
            identity,
            name,
            value,
        });
        // The root stays open.
        if let Some(upper @ 1..) = self.levels.len().checked_sub(HELD + 1) {
            self.levels[upper].fd = None;
        }
        Ok(())
    }

    /// Goes up one level. Returns what was left: its descriptor and value.
    pub(crate) fn pop(&mut self) -> Option<(Option<OwnedFd>, T)> {
        let left = self.levels.pop()?;
        if let Some(parent) = self.levels.last()
            && parent.fd.is_none()
        {
            let found = left
                .fd
                .as_ref()
                .and_then(|fd| above(fd.as_fd(), parent.identity))
                .or_else(|| self.by_names());
            if let Some(parent) = self.levels.last_mut() {
                parent.fd = found;
            }
        }
        Some((left.fd, left.value))
    }

    /// Opens the innermost directory again by its names.
    fn by_names(&self) -> Option<OwnedFd> {
        let mut at: Option<OwnedFd> = None;
        for level in self.levels.get(1..)? {
            let parent = at
                .as_ref()
                .map_or_else(|| self.root(), |fd| Some(fd.as_fd()));
            let next = beneath::directory(parent?, &level.name).ok()?;
            if identity(next.as_fd()).ok()? != level.identity {
                return None;
            }
            at = Some(next);
        }
        at
    }
}

/// Opens `..`, if that is still the directory we came from. Only its identity
/// is looked at before it is known to be ours.
fn above(child: BorrowedFd<'_>, expected: (u64, u64)) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::openat(child, c"..", flags, Mode::empty()).ok()?;
    (identity(parent.as_fd()).ok()? == expected).then_some(parent)
}

/// What tells a file from all others: its device and inode.
fn identity(fd: BorrowedFd<'_>) -> Result<(u64, u64), Errno> {
    let stat = fstat(fd)?;
    Ok((stat.st_dev, stat.st_ino))
}
