//! Removing hostile trees: any depth, any names, links never followed.
//!
//! The tree must not be in use. The walk holds one directory open at a time
//! and goes back up by `..`, checked against the inode that it came from, so
//! that neither depth nor width costs descriptors or stack, and width no memory.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, IFlags, Mode, OFlags, RawDir, ResolveFlags, SeekFrom, Timespec, Timestamps,
    fstat, futimens, ioctl_getflags, ioctl_setflags, openat, openat2, seek, statat, unlinkat,
};
use rustix::io::{Errno, Result};

/// How many names of one directory are held at once. A directory of a million
/// others is gone through in as many turns as it takes.
const HELD: usize = 256;

/// How often a directory that is not empty yet is gone through again.
const TURNS: usize = 8;

/// Keep a file from being removed, and a directory from losing names. A
/// sandbox cannot set them, but what a restore or a person did must not wedge
/// a delete.
const LOCKED: IFlags = IFlags::IMMUTABLE.union(IFlags::APPEND);

struct Level {
    /// The directory's name in its parent.
    name: CString,
    inode: (u64, u64),
    /// Subdirectories still to visit, of those that were read.
    pending: Vec<CString>,
    /// Where to read on; `None` at the end.
    resume: Option<u64>,
    /// Whether the directory goes too, once empty.
    doomed: bool,
    turns: usize,
    /// Its times before anything in it was removed.
    times: Timestamps,
}

/// Removes the entry `name` of `parent` with all below it; `Ok` if there is none.
pub fn remove(parent: impl AsFd, name: &str) -> Result<()> {
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    let parent = parent.as_fd();
    match statat(parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(cause) => Err(cause),
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
            walk(parent, name, true)
        }
        Ok(_) => unlink(parent, &name, AtFlags::empty()),
    }
}

/// Removes every directory called `node_modules` below the directory `name` of
/// `parent`, at any depth.
pub fn prune_node_modules(parent: impl AsFd, name: &str) -> Result<()> {
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    walk(parent.as_fd(), name, false)
}

fn walk(parent: BorrowedFd<'_>, name: CString, doomed: bool) -> Result<()> {
    let mut dir = open(parent, &name)?;
    let mut levels = vec![enter(&dir, name, doomed)?];
    while let Some(level) = levels.last_mut() {
        if let Some(next) = level.pending.pop() {
            let doomed = level.doomed || next.as_bytes() == b"node_modules";
            dir = open(dir.as_fd(), &next)?;
            levels.push(enter(&dir, next, doomed)?);
            continue;
        }
        if level.resume.is_some() {
            level.read(dir.as_fd())?;
            continue;
        }
        let above = match levels.len().checked_sub(2) {
            None => None,
            Some(above) => {
                let up = up(&dir)?;
                if inode(&up)? != levels[above].inode {
                    return Err(Errno::STALE);
                }
                Some(up)
            }
        };
        let Some(done) = levels.last_mut() else { break };
        if done.doomed {
            let above = above.as_ref().map_or(parent, AsFd::as_fd);
            match unlink(above, &done.name, AtFlags::REMOVEDIR) {
                // A file system may skip names while others are removed.
                Err(Errno::NOTEMPTY | Errno::EXIST) if done.turns < TURNS => {
                    done.turns += 1;
                    done.resume = Some(0);
                    continue;
                }
                removed => removed?,
            }
        }
        let done = levels.pop();
        let (Some(up), Some(level)) = (above, levels.last()) else {
            break;
        };
        dir = up;
        if done.is_some_and(|done| done.doomed) && !level.doomed {
            // What is kept is kept as the snapshot has it, times included.
            futimens(&dir, &level.times)?;
        }
    }
    Ok(())
}

fn enter(dir: &OwnedFd, name: CString, doomed: bool) -> Result<Level> {
    let found = fstat(dir)?;
    let mut level = Level {
        name,
        inode: (found.st_dev, found.st_ino),
        pending: Vec::new(),
        resume: Some(0),
        doomed,
        turns: 0,
        times: Timestamps {
            last_access: time(found.st_atime, found.st_atime_nsec),
            last_modification: time(found.st_mtime, found.st_mtime_nsec),
        },
    };
    level.read(dir.as_fd())?;
    Ok(level)
}

impl Level {
    /// Reads on; in a doomed directory all but subdirectories is removed.
    fn read(&mut self, dir: BorrowedFd<'_>) -> Result<()> {
        let Some(from) = self.resume.take() else {
            return Ok(());
        };
        seek(dir, SeekFrom::Start(from))?;
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut listing = RawDir::new(dir, &mut buffer);
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(found.st_mode)
                }
                kind => kind,
            };
            if kind != FileType::Directory {
                if self.doomed {
                    unlink(dir, name, AtFlags::empty())?;
                }
                continue;
            }
            self.pending.push(name.to_owned());
            if self.pending.len() >= HELD {
                self.resume = Some(entry.next_entry_cookie());
                break;
            }
        }
        Ok(())
    }
}

/// Removes one name, and what keeps it from being removed.
fn unlink(dir: BorrowedFd<'_>, name: &CStr, how: AtFlags) -> Result<()> {
    match unlinkat(dir, name, how) {
        Err(refused @ (Errno::PERM | Errno::ACCESS)) => {
            let of_dir = unlock(dir);
            let of_entry = open_entry(dir, name).and_then(|entry| unlock(entry.as_fd()));
            match (of_dir, of_entry) {
                (Ok(true), _) | (_, Ok(true)) => unlinkat(dir, name, how),
                _ => Err(refused),
            }
        }
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Whether there was something to unlock.
fn unlock(file: BorrowedFd<'_>) -> Result<bool> {
    let flags = ioctl_getflags(file)?;
    if !flags.intersects(LOCKED) {
        return Ok(false);
    }
    ioctl_setflags(file, flags.difference(LOCKED))?;
    Ok(true)
}

/// Opens a file or directory for its flags. Nothing else carries any, and no
/// pipe or device is opened: a link is refused, and opening does not block.
fn open_entry(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
    let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile | FileType::Directory => {}
        _ => return Err(Errno::NOTTY),
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    beneath(dir, name, flags)
}

fn time(seconds: i64, nanoseconds: u64) -> Timespec {
    Timespec {
        tv_sec: seconds,
        // Below a thousand million by definition.
        tv_nsec: nanoseconds.cast_signed(),
    }
}

/// One name down, on the same file system: what is mounted in a tree is not
/// part of it.
fn open(dir: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    beneath(dir.as_fd(), name, flags)
}

fn beneath(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    openat2(dir, name, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// One level up. Only its inode is looked at before it is known to be ours.
fn up(dir: &OwnedFd) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(dir, c"..", flags, Mode::empty())
}

fn inode(dir: &OwnedFd) -> Result<(u64, u64)> {
    let found = fstat(dir)?;
    Ok((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn opened(path: &std::path::Path) -> OwnedFd {
        OwnedFd::from(fs::File::open(path).unwrap())
    }

    #[test]
    fn a_tree_deeper_than_a_path_or_the_descriptor_limit_goes() {
        let dir = tempfile::tempdir().unwrap();
        let mut at = opened(dir.path());
        for _ in 0..3000 {
            rustix::fs::mkdirat(&at, "d", Mode::from_raw_mode(0o700)).unwrap();
            at = open(&at, c"d").unwrap();
        }
        remove(opened(dir.path()), "d").unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_with_more_names_than_are_held_goes() {
        let dir = tempfile::tempdir().unwrap();
        let wide = dir.path().join("wide");
        for number in 0..3 * HELD + 1 {
            fs::create_dir_all(wide.join(format!("{number}/node_modules/x"))).unwrap();
            fs::write(wide.join(format!("file {number}")), "x").unwrap();
        }
        prune_node_modules(opened(dir.path()), "wide").unwrap();
        for number in 0..3 * HELD + 1 {
            let inside = fs::read_dir(wide.join(number.to_string())).unwrap();
            assert_eq!(inside.count(), 0, "{number}");
        }
        remove(opened(dir.path()), "wide").unwrap();
        assert!(!wide.exists());
    }

    #[test]
    fn modes_and_flags_do_not_stop_a_delete() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("tree");
        fs::create_dir_all(at.join("a/locked")).unwrap();
        fs::write(at.join("a/locked/fixed"), "x").unwrap();
        fs::write(at.join("a/grows"), "x").unwrap();
        let closed = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o000);
        fs::set_permissions(at.join("a/locked/fixed"), closed.clone()).unwrap();
        fs::set_permissions(at.join("a/locked"), closed).unwrap();
        let set = |path: &str, flag| {
            let file = opened(&at.join(path));
            ioctl_getflags(&file)
                .and_then(|flags| ioctl_setflags(&file, flags.union(flag)))
                .is_ok()
        };
        // Where the file system has such flags, and this user may set them.
        let flagged = set("a/locked/fixed", IFlags::IMMUTABLE);
        if flagged {
            assert!(set("a/grows", IFlags::APPEND));
            assert!(set("a/locked", IFlags::APPEND));
            assert!(set("a", IFlags::IMMUTABLE));
            assert!(fs::remove_dir_all(&at).is_err());
        }
        remove(opened(dir.path()), "tree").unwrap();
        assert!(!at.exists());
    }

    #[test]
    fn what_is_mounted_in_a_tree_is_not_removed() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        // In a mount namespace of its own, which ends with the child.
        let dir = tempfile::tempdir().unwrap();
        let script = "mount -t tmpfs tmpfs \"$TREE/a/mounted\" && touch \"$TREE/a/mounted/kept\" \
            && \"$0\" --exact volumes::tree::tests::mounted_child --ignored \
            && test -e \"$TREE/a/mounted/kept\"";
        fs::create_dir_all(dir.path().join("tree/a/mounted")).unwrap();
        let ran = std::process::Command::new("unshare")
            .args(["--mount", "sh", "-c", script])
            .arg(std::env::current_exe().unwrap())
            .env("TREE", dir.path().join("tree"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
        remove(opened(dir.path()), "tree").unwrap();
    }

    #[test]
    #[ignore = "run by what_is_mounted_in_a_tree_is_not_removed"]
    fn mounted_child() {
        let tree = std::env::var_os("TREE").unwrap();
        let parent = opened(std::path::Path::new(&tree).parent().unwrap());
        assert_eq!(remove(&parent, "tree"), Err(Errno::XDEV));
        assert_eq!(prune_node_modules(&parent, "tree"), Err(Errno::XDEV));
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        fs::create_dir(dir.path().join("tree")).unwrap();
        symlink(&outside, dir.path().join("tree/link")).unwrap();
        symlink(&outside, dir.path().join("top")).unwrap();
        let at = opened(dir.path());
        remove(&at, "tree").unwrap();
        remove(&at, "top").unwrap();
        remove(&at, "never-was").unwrap();
        assert!(outside.join("kept").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn node_modules_go_at_any_depth_and_only_directories() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("workspace");
        for path in ["node_modules/a/b", "p/q/node_modules/x", "p/src"] {
            fs::create_dir_all(at.join(path)).unwrap();
            fs::write(at.join(path).join("f"), "x").unwrap();
        }
        fs::write(at.join("p/src/node_modules"), "a file").unwrap();
        let before = fs::metadata(&at).unwrap().modified().unwrap();
        prune_node_modules(opened(dir.path()), "workspace").unwrap();
        assert_eq!(fs::metadata(&at).unwrap().modified().unwrap(), before);
        assert!(!at.join("node_modules").exists());
        assert!(!at.join("p/q/node_modules").exists());
        assert!(at.join("p/src/f").exists());
        assert!(at.join("p/src/node_modules").exists());
    }
}
