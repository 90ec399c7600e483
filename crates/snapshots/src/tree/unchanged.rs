//! Whether a tree is what the last walk saw, without listing or opening files.
//!
//! An inode whose change time is the same has the same content, mode, owner and
//! attributes; a directory with the same change time has the same names. The
//! kernel moves that time with each change, and no program can set it. Only
//! times from well before the walk are believed, so that a change within the
//! same tick of the clock is not missed. A write through a shared mapping moves
//! it when the page becomes dirty, so nothing may have the tree mapped while it
//! is walked; what is mapped later makes its pages dirty anew.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Statx, StatxAttributes, StatxFlags, fstat, makedev, statx};
use rustix::io::Errno;

use super::beneath;
use super::stack::Stack;
use crate::walked::{Seen, Sort, Step, Walked, nanos};
use crate::{Cancel, SnapshotError};

/// What has this name in a directory, if it is on `device` and nothing is
/// mounted there.
pub(crate) fn look(parent: BorrowedFd<'_>, name: &[u8], device: u64) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let found = statx(parent, name, flags, StatxFlags::BASIC_STATS)?;
    let mask = StatxFlags::from_bits_retain(found.stx_mask);
    if makedev(found.stx_dev_major, found.stx_dev_minor) != device
        || found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
        || !mask.contains(StatxFlags::BASIC_STATS)
    {
        return Err(Errno::XDEV);
    }
    Ok(found)
}

impl From<&Statx> for Seen {
    fn from(found: &Statx) -> Self {
        Self {
            inode: found.stx_ino,
            changed: nanos(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
        }
    }
}

/// Whether `tree` has the `entries` of `walked`, root included, as they were.
/// What cannot be told counts as a change.
pub(crate) fn is_unchanged(
    tree: BorrowedFd<'_>,
    walked: &Walked,
    entries: u64,
    cancel: &Cancel,
) -> Result<bool, SnapshotError> {
    let mut stack: Option<Stack<()>> = None;
    let mut same = 0_u64;
    for step in walked.steps.iter() {
        cancel.check()?;
        if step.seen.changed > walked.certain_until {
            return Ok(false);
        }
        let is_same = match &mut stack {
            Some(stack) => is_same(stack, step, walked.root.0),
            None => begin(tree, step.seen).map(|begun| {
                stack = begun;
                stack.is_some()
            }),
        };
        if !matches!(is_same, Ok(true)) {
            return Ok(false);
        }
        same += 1;
    }
    Ok(same == entries)
}

fn begin(tree: BorrowedFd<'_>, seen: Seen) -> Result<Option<Stack<()>>, Errno> {
    let root = beneath::directory(tree, b".")?;
    match Seen::of(&fstat(&root)?) == seen {
        true => Stack::new(root, ()).map(Some),
        false => Ok(None),
    }
}

fn is_same(stack: &mut Stack<()>, step: Step<'_>, device: u64) -> Result<bool, Errno> {
    for _ in 0..step.up {
        stack.pop();
    }
    let parent = stack.top().ok_or(Errno::NOENT)?;
    if step.sort != Sort::Directory {
        return Ok(Seen::from(&look(parent, step.name, device)?) == step.seen);
    }
    let directory = beneath::directory(parent, step.name)?;
    if Seen::of(&fstat(&directory)?) != step.seen {
        return Ok(false);
    }
    stack.push(step.name.to_vec(), directory, ())?;
    Ok(true)
}
