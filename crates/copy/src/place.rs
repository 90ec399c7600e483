//! Where a copy goes: the rules of `docker cp`.

use crate::names::{Mapping, parts, split};
use crate::source::trim;
use crate::{CopyError, TargetFault};
use hutch_pax::{Body, Member};
use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Links that are followed before a path counts as a loop.
const LINKS: usize = 40;

/// Where an archive goes.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// Its members go into this directory, which must exist.
    Into(&'a Path),
    /// What it holds goes to this path as a copy would: into it when it is a
    /// directory, else in its place or under its name.
    As(&'a Path, Expect<'a>),
}

/// What an archive may hold.
#[derive(Debug, Clone, Copy)]
pub enum Expect<'a> {
    /// One thing of any name, or the contents of a directory.
    Any,
    /// One thing of this name and what is below it.
    Named(&'a [u8]),
    /// The contents of a directory.
    Contents,
}

/// The directory to unpack in, and where in it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) base: OwnedFd,
    pub(crate) mapping: Mapping,
}

/// Opens a directory that must be there.
pub(crate) fn into(path: &Path) -> Result<Place, CopyError> {
    let shown = path.as_os_str().as_bytes();
    let found = std::fs::metadata(path).map_err(|error| CopyError::io(shown, error))?;
    if !found.is_dir() {
        return Err(CopyError::target(
            shown,
            TargetFault::NotDirectory,
            "an archive is unpacked into a directory, and this is none",
        ));
    }
    Ok(Place {
        base: open(path)?,
        mapping: Mapping::default(),
    })
}

/// Judges the target by what is there and by the first member.
pub(crate) fn place(path: &Path, expect: Expect<'_>, first: &Member) -> Result<Place, CopyError> {
    let root = root(expect, first)?;
    let is_directory = first.body == Body::Directory;
    let shown = path.as_os_str().as_bytes();
    let must_be_directory = shown.ends_with(b"/") || shown.ends_with(b"/.") || shown == b".";
    let fault = |fault, reason| Err(CopyError::target(shown, fault, reason));
    let at = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return Ok(Place {
                base: open(path)?,
                mapping: Mapping {
                    prefix: root.clone(),
                    root,
                },
            });
        }
        Ok(_) if is_directory => {
            return fault(
                TargetFault::NotDirectory,
                "a directory cannot be copied over a file; choose another target",
            );
        }
        Ok(_) if must_be_directory => {
            return fault(TargetFault::NotDirectory, "it is no directory");
        }
        Ok(found) if !found.is_file() => {
            return fault(
                TargetFault::Unsuitable,
                "it is neither a file nor a directory; use - for standard output",
            );
        }
        Ok(_) => followed(path)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if must_be_directory && !is_directory {
                return fault(
                    TargetFault::Missing,
                    "the directory to copy into does not exist; make it first",
                );
            }
            followed(path)?
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return fault(TargetFault::NotDirectory, "it is no directory");
        }
        Err(error) => return Err(CopyError::io(shown, error)),
    };
    let bytes = at.as_os_str().as_bytes();
    let bytes = trim(bytes.strip_suffix(b"/.").unwrap_or(bytes));
    let (above, name) = split(bytes);
    if name.is_empty() || matches!(name, b"." | b"..") {
        return fault(TargetFault::Unsuitable, "the path ends in no name");
    }
    let above: &[u8] = match above {
        b"" if bytes.starts_with(b"/") => b"/",
        b"" => b".",
        above => above,
    };
    Ok(Place {
        base: open(Path::new(OsStr::from_bytes(above)))?,
        mapping: Mapping {
            prefix: Some(name.to_vec()),
            root,
        },
    })
}

/// The name that all members have to be below; `None` for contents.
fn root(expect: Expect<'_>, first: &Member) -> Result<Option<Vec<u8>>, CopyError> {
    let parts = parts(&first.path)?;
    let as_asked = match (expect, parts.as_slice()) {
        (Expect::Any | Expect::Contents, []) => first.body == Body::Directory,
        (Expect::Any, [_]) => true,
        (Expect::Named(name), [found]) => *found == name,
        _ => false,
    };
    if !as_asked {
        return Err(CopyError::refused(
            &first.path,
            "does not begin with what was asked for",
        ));
    }
    Ok(parts.first().map(|name| name.to_vec()))
}

/// Where a path leads in the end, be it there or not.
fn followed(path: &Path) -> Result<PathBuf, CopyError> {
    let mut at = path.to_owned();
    for _ in 0..LINKS {
        let Ok(link) = std::fs::read_link(&at) else {
            return Ok(at);
        };
        at = at.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(CopyError::io(
        path.as_os_str().as_bytes(),
        rustix::io::Errno::LOOP,
    ))
}

fn open(path: &Path) -> Result<OwnedFd, CopyError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
        .map_err(|error| CopyError::io(path.as_os_str().as_bytes(), error))
}
