//! Files that are as they were at the last save.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Statx, StatxAttributes, StatxFlags, makedev, statx};
use rustix::io::Errno;

use super::{Failure, Found, Walk};
use crate::known::{Base, Known};
use crate::walked::{Seen, nanos};
use crate::{Attributes, Mtime};
use hutch_pax::{Body, Member};

impl From<&Statx> for Seen {
    fn from(found: &Statx) -> Self {
        Self {
            inode: found.stx_ino,
            changed: nanos(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
        }
    }
}

/// What has this name in a directory, if nothing is mounted there.
pub(crate) fn stat(parent: BorrowedFd<'_>, name: &[u8]) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let found = statx(parent, name, flags, StatxFlags::BASIC_STATS)?;
    let mask = StatxFlags::from_bits_retain(found.stx_mask);
    let is_mount = found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    if is_mount || !mask.contains(StatxFlags::BASIC_STATS) {
        return Err(Errno::XDEV);
    }
    Ok(found)
}

/// The device that a name was found on.
pub(crate) fn device(found: &Statx) -> u64 {
    makedev(found.stx_dev_major, found.stx_dev_minor)
}

/// A file that `base` knows, unless it changed. What cannot be told counts as a
/// change, and is told when it is opened.
pub(super) fn look<'a>(
    parent: BorrowedFd<'_>,
    name: &[u8],
    base: &'a Base,
) -> Option<(Statx, &'a Known)> {
    if base.files.is_empty() {
        return None;
    }
    let found = stat(parent, name).ok()?;
    let known = base.known(Seen::from(&found), found.stx_size, attributes(&found).mtime)?;
    (device(&found) == base.device).then_some((found, known))
}

fn attributes(found: &Statx) -> Attributes {
    Attributes {
        mode: u32::from(found.stx_mode) & 0o7777,
        uid: found.stx_uid,
        gid: found.stx_gid,
        mtime: Mtime {
            seconds: found.stx_mtime.tv_sec,
            nanos: found.stx_mtime.tv_nsec,
        },
    }
}

impl Walk<'_> {
    /// The entry of such a file.
    pub(super) fn known(
        &mut self,
        name: &[u8],
        found: &Statx,
        known: &Known,
    ) -> Result<Found, Failure> {
        let path = self.bounded(name)?;
        let number = self.stack.value().map_or(0, |level| level.number);
        let identity = (device(found), found.stx_ino);
        let first = match found.stx_nlink {
            0 | 1 => None,
            _ => self.links.seen(identity, number, name),
        };
        let (body, xattrs, known) = match first {
            Some(first) => (Body::HardLink(first), Vec::new(), None),
            None => {
                let size = found.stx_size;
                (
                    Body::File { size },
                    known.xattrs.clone(),
                    Some(known.kind()),
                )
            }
        };
        Ok(Found {
            member: Member {
                path,
                attributes: attributes(found),
                xattrs,
                body,
            },
            file: None,
            known,
            seen: Seen::from(found),
            depth: self.stack.depth(),
        })
    }
}
