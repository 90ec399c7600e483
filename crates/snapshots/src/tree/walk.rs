//! Going through a tree: parents before children, names in byte order.

pub(crate) mod known;

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, RawDir, Stat, fstat, readlinkat};
use rustix::io::Errno;

use super::links::Links;
use super::stack::Stack;
use super::xattr::{self, Of};
use super::{beneath, holes};
use crate::known::Base;
use crate::walked::Seen;
use crate::{Attributes, Cancel, Kind, LimitKind, Limits, Mtime, Rules, Skipped, SnapshotError};
use hutch_pax::{Body, Member};

/// Goes through a tree. Each entry is opened once and described by that
/// descriptor, so what is swapped meanwhile cannot mix two files.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    stack: Stack<Level>,
    /// The path of the innermost directory.
    path: Vec<u8>,
    links: Links,
    begun: bool,
    entries: u64,
    skipped: Skipped,
    rules: Rules,
    limits: Limits,
    cancel: Cancel,
    /// Files as they were, which are not opened if they still are.
    base: Option<&'a Base>,
}

#[derive(Debug)]
struct Level {
    /// What is left to do, the next name last.
    names: Vec<(Vec<u8>, FileType)>,
    /// Bytes of the path of the directory above.
    above: usize,
    /// Its number in `links`.
    number: usize,
}

/// An entry that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) member: Member,
    /// The open file, for a regular file that is not known.
    pub(crate) file: Option<OwnedFd>,
    /// What is known of its content.
    pub(crate) known: Option<Kind>,
    /// Its inode, as it was before it was read.
    pub(crate) seen: Seen,
    /// How many directories it is in.
    pub(crate) depth: usize,
}

impl<'a> Walk<'a> {
    /// Begins at `tree`, a directory.
    pub(crate) fn new(
        tree: BorrowedFd<'_>,
        rules: Rules,
        limits: Limits,
        cancel: Cancel,
    ) -> Result<Self, SnapshotError> {
        let failed = |error| SnapshotError::io("opening the tree", error);
        // A descriptor of its own: the position of a listing is shared between copies.
        let root = beneath::directory(tree, b".").map_err(failed)?;
        let level = Level {
            names: names(root.as_fd()).map_err(failed)?,
            above: 0,
            number: 0,
        };
        Ok(Self {
            stack: Stack::new(root, level).map_err(failed)?,
            path: Vec::new(),
            links: Links::new(),
            begun: false,
            entries: 0,
            skipped: Skipped::default(),
            rules,
            limits,
            cancel,
            base: None,
        })
    }

    /// Opens no file that is as `base` knows it.
    pub(crate) fn knowing(self, base: &'a Base) -> Self {
        let base = Some(base);
        Self { base, ..self }
    }

    /// What was left out so far.
    pub(crate) fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// The next entry; the first is the root.
    pub(crate) fn next(&mut self) -> Result<Option<Found>, SnapshotError> {
        if !std::mem::replace(&mut self.begun, true) {
            return self.root().map(Some);
        }
        loop {
            self.cancel.check()?;
            let Some(level) = self.stack.value() else {
                return Ok(None);
            };
            let Some((name, hint)) = level.names.pop() else {
                let above = level.above;
                if self.stack.depth() == 1 {
                    return Ok(None);
                }
                self.stack.pop();
                self.path.truncate(above);
                continue;
            };
            match self.entry(&name, hint) {
                Ok(Some(found)) => {
                    self.entries += 1;
                    if self.entries > self.limits.entries {
                        let limit = self.limits.entries;
                        return Err(SnapshotError::limit(LimitKind::Entries, limit));
                    }
                    return Ok(Some(found));
                }
                Ok(None) => {}
                Err(Failure::Errno(Errno::NOENT | Errno::STALE)) => self.skipped.vanished += 1,
                Err(Failure::Errno(Errno::XDEV)) => {
                    return Err(SnapshotError::ForeignMount {
                        path: self.path_of(&name).escape_ascii().to_string(),
                    });
                }
                Err(Failure::Errno(error)) => {
                    let path = self.path_of(&name);
                    let action = format!("reading {:?}", path.escape_ascii().to_string());
                    return Err(SnapshotError::io(action, error));
                }
                Err(Failure::Other(error)) => return Err(error),
            }
        }
    }

    fn root(&mut self) -> Result<Found, SnapshotError> {
        let failed = |error| SnapshotError::io("reading the root of the tree", error);
        let root = self.stack.root().ok_or_else(|| failed(Errno::NOENT))?;
        let stat = fstat(root).map_err(failed)?;
        Ok(Found {
            member: Member {
                path: Vec::new(),
                attributes: attributes(&stat),
                xattrs: xattr::read(Of::Open(root), &self.limits)?,
                body: Body::Directory,
            },
            file: None,
            known: None,
            seen: Seen::of(&stat),
            depth: 0,
        })
    }

    fn path_of(&self, name: &[u8]) -> Vec<u8> {
        let mut path = self.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        path
    }

    fn bounded(&self, name: &[u8]) -> Result<Vec<u8>, SnapshotError> {
        let (path, limit) = (self.path_of(name), self.limits.path_bytes);
        match path.len() as u64 > limit {
            true => Err(SnapshotError::limit(LimitKind::PathBytes, limit)),
            false => Ok(path),
        }
    }

    fn entry(&mut self, name: &[u8], hint: FileType) -> Result<Option<Found>, Failure> {
        // Gone from under us, with all that was still to be read in it.
        let parent = self.stack.top().ok_or(Errno::NOENT)?;
        if hint == FileType::RegularFile
            && let Some(base) = self.base
            && let Some((found, known)) = known::look(parent, name, base)
        {
            return self.known(name, &found, known).map(Some);
        }
        let Some(open) = Open::named(parent, name, hint, &self.rules)? else {
            self.skipped.node_modules += 1;
            return Ok(None);
        };
        let stat = &open.stat;
        let seen = Seen::of(stat);
        let path = self.bounded(name)?;
        let depth = self.stack.depth();
        let parent_number = self.stack.value().map_or(0, |level| level.number);
        let body = match open.kind() {
            FileType::Socket => {
                self.skipped.sockets += 1;
                return Ok(None);
            }
            FileType::BlockDevice => {
                self.skipped.devices += 1;
                return Ok(None);
            }
            FileType::CharacterDevice if stat.st_rdev != 0 => {
                self.skipped.devices += 1;
                return Ok(None);
            }
            FileType::Directory => Body::Directory,
            kind => {
                let body = open.body(kind)?;
                // Remembered only once nothing can go wrong with it any more, or
                // a later name would lead to an entry that is not there.
                match stat.st_nlink {
                    0 | 1 => body,
                    _ => self
                        .links
                        .seen(open.identity(), parent_number, name)
                        .map_or(body, Body::HardLink),
                }
            }
        };
        let of = match open.read {
            true => Of::Open(open.fd.as_fd()),
            false => Of::Handle(open.fd.as_fd()),
        };
        let member = Member {
            attributes: attributes(stat),
            xattrs: match body {
                Body::HardLink(_) => Vec::new(),
                _ => xattr::read(of, &self.limits)?,
            },
            path,
            body,
        };
        let mut file = None;
        match member.body {
            Body::Directory => {
                let level = Level {
                    names: names(open.fd.as_fd())?,
                    above: self.path.len(),
                    number: self.links.directory(parent_number, name),
                };
                self.stack.push(name.to_vec(), open.fd, level)?;
                self.path.clone_from(&member.path);
            }
            Body::File { .. } | Body::Sparse { .. } => file = Some(open.fd),
            _ => {}
        }
        Ok(Some(Found {
            member,
            file,
            known: None,
            seen,
            depth,
        }))
    }
}

/// Why an entry was not read: by the kernel's word, which may be no error.
enum Failure {
    Errno(Errno),
    Other(SnapshotError),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::Errno(error)
    }
}

impl From<SnapshotError> for Failure {
    fn from(error: SnapshotError) -> Self {
        Self::Other(error)
    }
}

/// An entry, open, and what it is by that descriptor.
struct Open {
    fd: OwnedFd,
    stat: Stat,
    /// Whether it can be read, or is a handle only.
    read: bool,
}

impl Open {
    /// Opens a name. `hint` is what the listing said it is, which may have
    /// changed. `None` if the rules leave it out.
    fn named(
        parent: BorrowedFd<'_>,
        name: &[u8],
        hint: FileType,
        rules: &Rules,
    ) -> Result<Option<Self>, Errno> {
        let left_out = |kind| kind == FileType::Directory && rules.leaves_out_directory(name);
        let mut kind = hint;
        for _ in 0..4 {
            if left_out(kind) {
                return Ok(None);
            }
            let (opened, read) = match kind {
                FileType::Directory => (beneath::directory(parent, name), true),
                FileType::RegularFile => (beneath::file(parent, name), true),
                _ => (beneath::handle(parent, name), false),
            };
            let fd = match opened {
                Ok(fd) => fd,
                // No longer what it was.
                Err(Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO) if read => {
                    kind = FileType::Unknown;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let stat = fstat(&fd)?;
            let is = FileType::from_raw_mode(stat.st_mode);
            let wants_read = matches!(is, FileType::Directory | FileType::RegularFile);
            if read == wants_read && (!read || is == kind) {
                return Ok(Some(Self { fd, stat, read }));
            }
            kind = if wants_read { is } else { FileType::Unknown };
        }
        // It keeps changing: as good as gone.
        Err(Errno::NOENT)
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    fn identity(&self) -> (u64, u64) {
        (self.stat.st_dev, self.stat.st_ino)
    }

    fn body(&self, kind: FileType) -> Result<Body, Errno> {
        Ok(match kind {
            FileType::RegularFile => {
                let size = u64::try_from(self.stat.st_size).unwrap_or(0);
                let allocated = u64::try_from(self.stat.st_blocks).unwrap_or(0) * 512;
                if allocated >= size {
                    return Ok(Body::File { size });
                }
                match holes::segments(self.fd.as_fd(), size)? {
                    // Compressed or kept within the inode, not holes.
                    whole if whole.len() == 1 && whole[0].length == size => Body::File { size },
                    segments => Body::Sparse { size, segments },
                }
            }
            FileType::Symlink => Body::Symlink(readlinkat(&self.fd, "", Vec::new())?.into_bytes()),
            FileType::Fifo => Body::Fifo,
            _ => Body::CharDevice { major: 0, minor: 0 },
        })
    }
}

/// The names in a directory, last first.
fn names(directory: BorrowedFd<'_>) -> Result<Vec<(Vec<u8>, FileType)>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); 16 << 10];
    let mut listing = RawDir::new(directory, &mut buffer);
    let mut names = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = match entry {
            Err(Errno::NOENT) => break,
            entry => entry?,
        };
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    names.sort_unstable_by(|one, other| other.0.cmp(&one.0));
    Ok(names)
}

fn attributes(stat: &Stat) -> Attributes {
    Attributes {
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        mtime: Mtime {
            seconds: stat.st_mtime,
            nanos: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
        },
    }
}
