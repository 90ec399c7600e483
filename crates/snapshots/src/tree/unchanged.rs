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

use rustix::fs::fstat;
use rustix::io::Errno;

use super::beneath;
use super::stack::Stack;
use super::walk::known;
use crate::walked::{Seen, Sort, Step, Walked};
use crate::{Cancel, SnapshotError};

/// Entries that are worth another thread.
const MANY: u64 = 2000;

/// Entries that a thread looks at in a row.
const ROW: u64 = 128;

/// Whether `tree` has the `entries` of `walked`, root included, as they were.
/// What cannot be told counts as a change.
pub(crate) fn is_unchanged(
    tree: BorrowedFd<'_>,
    walked: &Walked,
    entries: u64,
    cancel: &Cancel,
) -> Result<bool, SnapshotError> {
    if entries < MANY {
        return pass(tree, walked, entries, cancel, |_| true);
    }
    // Both go through all directories; the other entries they share.
    let shared = |mine| {
        pass(tree, walked, entries, cancel, move |at| {
            at / ROW % 2 == mine
        })
    };
    std::thread::scope(|scope| {
        let odd = scope.spawn(|| shared(1));
        let even = shared(0);
        // A thread that panicked has seen nothing.
        let odd = odd.join().unwrap_or(Ok(false));
        Ok(even? && odd?)
    })
}

fn pass(
    tree: BorrowedFd<'_>,
    walked: &Walked,
    entries: u64,
    cancel: &Cancel,
    is_mine: impl Fn(u64) -> bool,
) -> Result<bool, SnapshotError> {
    let mut stack: Option<Stack<()>> = None;
    let mut same = 0_u64;
    for step in walked.steps.iter() {
        cancel.check()?;
        if !walked.is_certain(step.seen) {
            return Ok(false);
        }
        let is_same = match &mut stack {
            Some(stack) => {
                for _ in 0..step.up {
                    stack.pop();
                }
                let wanted = step.sort == Sort::Directory || is_mine(same);
                if wanted {
                    is_same(stack, step, walked.root.0)
                } else {
                    Ok(true)
                }
            }
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
    let parent = stack.top().ok_or(Errno::NOENT)?;
    if step.sort != Sort::Directory {
        let found = known::stat(parent, step.name)?;
        return Ok(known::device(&found) == device && Seen::from(&found) == step.seen);
    }
    let directory = beneath::directory(parent, step.name)?;
    if Seen::of(&fstat(&directory)?) != step.seen {
        return Ok(false);
    }
    stack.push(step.name.to_vec(), directory, ())?;
    Ok(true)
}
