//! Moving an entry, by copy where it changes its file system.

use rustix::fs::{AtFlags, CWD, Gid, Mode, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Moves `from` to `to`, or into it when it is a directory.
pub(super) fn move_entry(from: &Path, to: &Path) -> io::Result<()> {
    let into = std::fs::metadata(to).is_ok_and(|metadata| metadata.is_dir());
    let target = match from.file_name().filter(|_| into) {
        Some(name) => to.join(name),
        None => to.to_owned(),
    };
    match std::fs::rename(from, &target) {
        Err(error) if error.raw_os_error() == Some(libc::EXDEV) => across(from, &target),
        other => other,
    }
}

fn across(from: &Path, to: &Path) -> io::Result<()> {
    // Copied beside the target first, so that the target is never seen half done.
    let name = format!(".sandboxd-{}", uuid::Uuid::new_v4().simple());
    let temporary = to.parent().ok_or(Errno::INVAL)?.join(name);
    let moved = copy(from, &temporary).and_then(|()| std::fs::rename(&temporary, to));
    if let Err(error) = moved {
        let _ = remove(&temporary);
        return Err(error);
    }
    remove(from)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = std::fs::symlink_metadata(from)?;
    let kind = metadata.file_type();
    if kind.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(from)?, to)?;
    } else if kind.is_dir() {
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if kind.is_file() {
        std::fs::copy(from, to)?;
    } else {
        return Err(Errno::XDEV.into());
    }
    keep(&metadata, to)
}

/// Gives the copy the owner, mode and time of the original.
fn keep(metadata: &Metadata, to: &Path) -> io::Result<()> {
    let nofollow = AtFlags::SYMLINK_NOFOLLOW;
    let (uid, gid) = (Uid::from_raw(metadata.uid()), Gid::from_raw(metadata.gid()));
    rustix::fs::chownat(CWD, to, Some(uid), Some(gid), nofollow)?;
    if !metadata.is_symlink() {
        let mode = Mode::from_raw_mode(metadata.mode() & 0o7777);
        rustix::fs::chmodat(CWD, to, mode, AtFlags::empty())?;
    }
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: metadata.atime(),
            tv_nsec: metadata.atime_nsec(),
        },
        last_modification: Timespec {
            tv_sec: metadata.mtime(),
            tv_nsec: metadata.mtime_nsec(),
        },
    };
    rustix::fs::utimensat(CWD, to, &times, nofollow)?;
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_dir() {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    }
}
