//! What is copied.

use crate::{CopyError, TargetFault, names::split};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A source: something in a directory by its name, or all that is in a directory.
///
/// `a/b` is the thing itself, a link included. `a/b/` is what it leads to. `a/b/.`
/// is what is in the directory `a/b`.
#[derive(Debug)]
pub struct Source {
    /// The directory that holds it, or the directory itself.
    pub(crate) at: OwnedFd,
    /// Its name there; `None` for what is in `at`.
    pub(crate) name: Option<Vec<u8>>,
    /// Whether a link is followed.
    pub(crate) follow: bool,
    /// For messages.
    pub(crate) shown: Vec<u8>,
}

impl Source {
    /// Opens what `path` names. `follow` copies what a link leads to, under the
    /// name of the link.
    ///
    /// # Errors
    /// A path that leads nowhere or ends in `..`.
    pub fn open(path: &Path, follow: bool) -> Result<Self, CopyError> {
        let shown = path.as_os_str().as_bytes();
        let failed = |error: Errno| CopyError::io(shown, error);
        let directory = |path: &[u8]| {
            let path = if path.is_empty() { b"." } else { path };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(failed)
        };
        if is_contents(shown) {
            return Ok(Self {
                at: directory(shown)?,
                name: None,
                follow,
                shown: shown.to_vec(),
            });
        }
        let trimmed = trim(shown);
        let slash = trimmed.len() < shown.len();
        let (above, name) = split(trimmed);
        if name.is_empty() || name == b".." {
            return Err(CopyError::target(
                shown,
                TargetFault::Unsuitable,
                "the path ends in no name; end it in a name, or in /. for what is in the directory",
            ));
        }
        let at = if above.is_empty() && trimmed.starts_with(b"/") {
            directory(b"/")?
        } else {
            directory(above)?
        };
        let follow = follow || slash;
        let flags = if follow {
            AtFlags::empty()
        } else {
            AtFlags::SYMLINK_NOFOLLOW
        };
        let stat = rustix::fs::statat(&at, name, flags).map_err(failed)?;
        let is_directory =
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory;
        if slash && !is_directory {
            return Err(failed(Errno::NOTDIR));
        }
        Ok(Self {
            at,
            name: Some(name.to_vec()),
            follow,
            shown: shown.to_vec(),
        })
    }

    /// The name of the first member of the archive; `None` for the contents of a
    /// directory.
    #[must_use]
    pub fn name_of(path: &Path) -> Option<Vec<u8>> {
        let path = path.as_os_str().as_bytes();
        if is_contents(path) {
            return None;
        }
        Some(split(trim(path)).1.to_vec())
    }
}

/// Whether a path means what is in a directory.
fn is_contents(path: &[u8]) -> bool {
    path == b"." || path.ends_with(b"/.") || (!path.is_empty() && trim(path).is_empty())
}

/// A path without the slashes at its end.
pub(crate) fn trim(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/');
    &path[..end.map_or(0, |at| at + 1)]
}
