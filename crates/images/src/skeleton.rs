//! The directories of a fresh root, less what is mounted over it.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Mode, chmodat, mkdirat, symlinkat};
use rustix::io::Errno;

/// Directories with their modes. `usr`, `etc`, `workspace`, `proc`, `sys`,
/// `dev` and `run` are mount points.
const DIRS: &[(&str, u32)] = &[
    ("dev", 0o755),
    ("etc", 0o755),
    ("home", 0o755),
    ("media", 0o755),
    ("mnt", 0o755),
    ("opt", 0o755),
    ("proc", 0o555),
    ("root", 0o700),
    ("run", 0o755),
    ("srv", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("usr", 0o755),
    ("var", 0o755),
    ("var/cache", 0o755),
    ("var/lib", 0o755),
    ("var/local", 0o755),
    ("var/log", 0o755),
    ("var/mail", 0o755),
    ("var/opt", 0o755),
    ("var/spool", 0o755),
    ("var/tmp", 0o1777),
    ("workspace", 0o755),
];

const LINKS: &[(&str, &str)] = &[
    ("bin", "usr/bin"),
    ("sbin", "usr/sbin"),
    ("lib", "usr/lib"),
    ("lib32", "usr/lib32"),
    ("lib64", "usr/lib64"),
    ("var/lock", "/run/lock"),
    ("var/run", "/run"),
];

/// Fills the empty directory `root`. What is there already is left alone, so
/// that an interrupted call can be made again.
///
/// # Errors
/// A directory or link cannot be made.
pub fn populate(root: BorrowedFd<'_>) -> rustix::io::Result<()> {
    for (name, mode) in DIRS {
        let mode = Mode::from_raw_mode(*mode);
        match mkdirat(root, *name, mode) {
            // The process's umask must not decide.
            Ok(()) => chmodat(root, *name, mode, AtFlags::empty())?,
            Err(Errno::EXIST) => {}
            Err(cause) => return Err(cause),
        }
    }
    for (name, target) in LINKS {
        match symlinkat(*target, root, *name) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}
