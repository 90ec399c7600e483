//! Removing hostile trees: any depth, any names, links never followed.
//!
//! The tree must not be in use. The walk holds one directory open at a time
//! and goes back up by `..`, checked against the inode that it came from, so
//! that neither depth nor width costs descriptors or stack.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Timespec, Timestamps, fstat, futimens, openat, statat,
    unlinkat,
};
use rustix::io::{Errno, Result};

struct Level {
    /// The directory's name in its parent.
    name: CString,
    inode: (u64, u64),
    /// Subdirectories still to visit.
    pending: Vec<CString>,
    /// Whether the directory goes too, once empty.
    doomed: bool,
    /// Its times before anything in it was removed.
    times: Timestamps,
}

/// Removes the entry `name` of `parent` with all below it; `Ok` if there is none.
pub fn remove(parent: impl AsFd, name: &str) -> Result<()> {
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    match unlinkat(parent.as_fd(), &name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(cause) => return Err(cause),
    }
    walk(parent, name, true)
}

/// Removes every directory called `node_modules` below the directory `name` of
/// `parent`, at any depth.
pub fn prune_node_modules(parent: impl AsFd, name: &str) -> Result<()> {
    walk(parent, CString::new(name).map_err(|_| Errno::INVAL)?, false)
}

fn walk(parent: impl AsFd, name: CString, doomed: bool) -> Result<()> {
    let mut dir = open(parent.as_fd(), &name)?;
    let mut levels = vec![enter(&dir, name, doomed)?];
    while let Some(level) = levels.last_mut() {
        if let Some(next) = level.pending.pop() {
            let doomed = level.doomed || next.as_bytes() == b"node_modules";
            dir = open(dir.as_fd(), &next)?;
            levels.push(enter(&dir, next, doomed)?);
            continue;
        }
        let Some(done) = levels.pop() else { break };
        let Some(above) = levels.last() else {
            if done.doomed {
                unlinkat(parent.as_fd(), &done.name, AtFlags::REMOVEDIR)?;
            }
            break;
        };
        dir = open(dir.as_fd(), c"..")?;
        if inode(&dir)? != above.inode {
            return Err(Errno::STALE);
        }
        if done.doomed {
            unlinkat(dir.as_fd(), &done.name, AtFlags::REMOVEDIR)?;
            if !above.doomed {
                // What is kept is kept as the snapshot has it, times included.
                futimens(&dir, &above.times)?;
            }
        }
    }
    Ok(())
}

/// Lists a directory; in a doomed one all but subdirectories is removed.
fn enter(dir: &OwnedFd, name: CString, doomed: bool) -> Result<Level> {
    let mut pending = Vec::new();
    let found = fstat(dir)?;
    let times = Timestamps {
        last_access: time(found.st_atime, found.st_atime_nsec),
        last_modification: time(found.st_mtime, found.st_mtime_nsec),
    };
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let entry_name = entry.file_name();
        if matches!(entry_name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let found = statat(dir, entry_name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(found.st_mode)
            }
            kind => kind,
        };
        if kind == FileType::Directory {
            pending.push(entry_name.to_owned());
        } else if doomed {
            unlinkat(dir, entry_name, AtFlags::empty())?;
        }
    }
    Ok(Level {
        name,
        inode: (found.st_dev, found.st_ino),
        pending,
        doomed,
        times,
    })
}

fn time(seconds: i64, nanoseconds: u64) -> Timespec {
    Timespec {
        tv_sec: seconds,
        // Below a thousand million by definition.
        tv_nsec: nanoseconds.cast_signed(),
    }
}

fn open(dir: impl AsFd, name: &std::ffi::CStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
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
