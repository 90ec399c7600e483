//! Extended attributes: which are kept, reading and setting them.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr, getxattr, listxattr, setxattr};
use rustix::io::Errno;

use crate::{LimitKind, Limits, SnapshotError, Xattr};

/// Most bytes that the kernel gives for one value or for all names.
const MOST: usize = 64 << 10;

/// Whether a snapshot keeps the attribute: what programs set, capabilities of
/// files, access lists, and what an overlay notes. Labels of the host's own
/// security modules stay with the host.
pub(crate) fn is_kept(name: &[u8]) -> bool {
    name.starts_with(b"user.")
        || name.starts_with(b"trusted.overlay.")
        || [
            &b"security.capability"[..],
            b"system.posix_acl_access",
            b"system.posix_acl_default",
        ]
        .contains(&name)
}

/// How a file is named to the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of<'a> {
    /// A file opened for reading or writing.
    Open(BorrowedFd<'a>),
    /// A handle, which these calls take only by its name in `/proc`. That name
    /// leads to the very file of the handle, even if it is a link.
    Handle(BorrowedFd<'a>),
}

impl Of<'_> {
    fn list(self, buffer: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Self::Open(fd) => flistxattr(fd, buffer),
            Self::Handle(fd) => listxattr(name_of(fd), buffer),
        }
    }

    fn get(self, name: &[u8], buffer: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Self::Open(fd) => fgetxattr(fd, name, buffer),
            Self::Handle(fd) => getxattr(name_of(fd), name, buffer),
        }
    }

    fn set(self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        match self {
            Self::Open(fd) => fsetxattr(fd, name, value, XattrFlags::empty()),
            Self::Handle(fd) => setxattr(name_of(fd), name, value, XattrFlags::empty()),
        }
    }
}

fn name_of(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// The kept attributes of a file, by name.
pub(crate) fn read(of: Of<'_>, limits: &Limits) -> Result<Vec<Xattr>, SnapshotError> {
    let mut first = [0; 512];
    let mut large;
    let names = match of.list(&mut first) {
        Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        Ok(length) => &first[..length],
        Err(Errno::RANGE) => {
            large = vec![0; MOST];
            let length = of
                .list(&mut large)
                .map_err(|error| failed("reading", error))?;
            &large[..length]
        }
        Err(error) => return Err(failed("reading", error)),
    };
    let names = names.split(|byte| *byte == 0).filter(|name| is_kept(name));
    let mut xattrs = Vec::new();
    let mut total = 0;
    let mut buffer = Vec::new();
    for name in names {
        buffer.resize(MOST, 0);
        let length = match of.get(name, &mut buffer) {
            Ok(length) => length,
            // Removed meanwhile.
            Err(Errno::NODATA) => continue,
            Err(error) => return Err(failed("reading", error)),
        };
        total += (name.len() + length) as u64;
        if total > limits.entry_bytes {
            return Err(SnapshotError::limit(
                LimitKind::EntryBytes,
                limits.entry_bytes,
            ));
        }
        xattrs.push(Xattr {
            name: name.into(),
            value: buffer[..length].into(),
        });
    }
    xattrs.sort();
    Ok(xattrs)
}

/// Sets attributes of a file.
pub(crate) fn write(of: Of<'_>, xattrs: &[Xattr]) -> Result<(), SnapshotError> {
    for xattr in xattrs {
        of.set(xattr.name.as_bytes(), xattr.value.as_bytes())
            .map_err(|error| failed("setting", error))?;
    }
    Ok(())
}

fn failed(what: &str, error: Errno) -> SnapshotError {
    SnapshotError::io(format!("{what} extended attributes"), error)
}
