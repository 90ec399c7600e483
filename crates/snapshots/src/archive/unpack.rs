//! From an archive to a tree.
//!
//! An archive is taken only in the order that packing gives it: the root, then
//! each directory before what is in it, names in byte order, no directory
//! entered twice. So an entry can only land in a directory that this very
//! unpacking has made, and none can be named twice.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, fchmod, fchown, fstat,
    ftruncate, futimens,
};
use rustix::io::Errno;

use super::check::Sink;
use super::damage::Damage;
use super::place;
use crate::tree::beneath;
use crate::tree::stack::Stack;
use crate::tree::xattr::{self, Of};
use crate::walked::Seen;
use crate::{Attributes, SnapshotError, Xattr, durable};
use hutch_pax::{Body, Member, Segment};

/// Builds a tree in an empty directory.
#[derive(Debug)]
pub(crate) struct Unpack {
    root: Option<OwnedFd>,
    stack: Option<Stack<Directory>>,
    /// The path of the innermost directory.
    path: Vec<u8>,
    file: Option<Writing>,
    /// The files made, in order.
    seen: Vec<Seen>,
    damage: Damage,
}

/// A directory that gets its metadata when all in it is there.
#[derive(Debug)]
struct Directory {
    attributes: Attributes,
    xattrs: Vec<Xattr>,
    above: usize,
    /// The last name made in it.
    last: Vec<u8>,
}

/// A file that is being filled.
#[derive(Debug)]
struct Writing {
    path: Vec<u8>,
    file: File,
    /// What is still to come, the next part last.
    segments: Vec<Segment>,
    attributes: Attributes,
    xattrs: Vec<Xattr>,
}

impl Unpack {
    /// Will build in `into`, which must be an empty directory.
    pub(crate) fn new(into: BorrowedFd<'_>, damage: Damage) -> Result<Self, SnapshotError> {
        let failed = |error| SnapshotError::io("opening the directory to restore into", error);
        let root = beneath::directory(into, b".").map_err(failed)?;
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut listing = rustix::fs::RawDir::new(&root, &mut buffer);
        while let Some(entry) = listing.next() {
            if !matches!(entry.map_err(failed)?.file_name().to_bytes(), b"." | b"..") {
                return Err(SnapshotError::NotEmpty);
            }
        }
        // What is made inside would inherit it.
        match rustix::fs::fremovexattr(&root, c"system.posix_acl_default") {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(Self {
            root: Some(root),
            stack: None,
            path: Vec::new(),
            file: None,
            seen: Vec::new(),
            damage,
        })
    }

    /// Gives all directories their metadata and waits for the disk. Returns what
    /// the files are now, in order.
    pub(crate) fn finish(mut self) -> Result<Vec<Seen>, SnapshotError> {
        while self.stack.as_ref().is_some_and(|stack| stack.depth() > 1) {
            self.up()?;
        }
        let Some(mut stack) = self.stack else {
            return Err(self.damage.is("has no root"));
        };
        if let Some((Some(fd), directory)) = stack.pop() {
            complete(fd.as_fd(), &directory.attributes, &directory.xattrs)
                .map_err(|error| error.at(b"."))?;
            durable::file_system(fd.as_fd())
                .map_err(|error| SnapshotError::io("syncing the restored tree", error))?;
        }
        Ok(self.seen)
    }

    fn up(&mut self) -> Result<(), SnapshotError> {
        let Some(stack) = &mut self.stack else {
            return Ok(());
        };
        if let Some((fd, directory)) = stack.pop() {
            let done = match fd {
                Some(fd) => complete(fd.as_fd(), &directory.attributes, &directory.xattrs),
                None => Err(Errno::NOENT.into()),
            };
            done.map_err(|error| error.at(&self.path))?;
            self.path.truncate(directory.above);
        }
        Ok(())
    }

    /// Makes `member`, whose directory is the innermost one.
    fn make(&mut self, member: &Member, name: &[u8]) -> Result<(), Failure> {
        let stack = self.stack.as_mut().ok_or(Errno::NOENT)?;
        let parent = stack.top().ok_or(Errno::NOENT)?;
        let (attributes, xattrs) = (member.attributes, &member.xattrs);
        match &member.body {
            Body::Directory => {
                rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
                let fd = beneath::directory(parent, name)?;
                let directory = Directory {
                    attributes,
                    xattrs: xattrs.clone(),
                    above: self.path.len(),
                    last: Vec::new(),
                };
                stack.push(name.to_vec(), fd, directory)?;
                self.path.clone_from(&member.path);
            }
            Body::File { size } => {
                let whole = Segment {
                    offset: 0,
                    length: *size,
                };
                let file = new_file(parent, name)?;
                self.write(member, file, vec![whole]);
            }
            Body::Sparse { size, segments } => {
                let file = new_file(parent, name)?;
                ftruncate(&file, *size)?;
                let mut segments = segments.clone();
                segments.reverse();
                self.write(member, file, segments);
            }
            Body::Symlink(target) => {
                rustix::fs::symlinkat(&target[..], parent, name)?;
                by_name(parent, name, attributes, None, xattrs)?;
            }
            Body::Fifo => {
                rustix::fs::mkfifoat(parent, name, Mode::RUSR)?;
                by_name(parent, name, attributes, Some(attributes.mode), xattrs)?;
            }
            Body::CharDevice { major: 0, minor: 0 } => {
                let kind = FileType::CharacterDevice;
                rustix::fs::mknodat(parent, name, kind, Mode::RUSR, 0)?;
                by_name(parent, name, attributes, Some(attributes.mode), xattrs)?;
            }
            Body::CharDevice { .. } | Body::BlockDevice { .. } => {
                return Err(Failure::Refused("has a device node"));
            }
            Body::HardLink(target) => {
                let (above, first) = place::split(target).map_err(Failure::Refused)?;
                let root = stack.root().ok_or(Errno::NOENT)?;
                let missing = Failure::Refused("has a hard link to what did not come before");
                let above = match beneath::deep_directory(root, above) {
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(missing),
                    above => above?,
                };
                let stat = match rustix::fs::statat(&above, first, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => return Err(missing),
                    stat => stat?,
                };
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    return Err(Failure::Refused("has a hard link to a directory"));
                }
                rustix::fs::linkat(&above, first, parent, name, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    fn write(&mut self, member: &Member, file: OwnedFd, segments: Vec<Segment>) {
        self.file = Some(Writing {
            path: member.path.clone(),
            file: file.into(),
            segments,
            attributes: member.attributes,
            xattrs: member.xattrs.clone(),
        });
    }
}

impl Sink for Unpack {
    fn begin(&mut self, member: &Member) -> Result<(), SnapshotError> {
        if let Some(foreign) = member
            .xattrs
            .iter()
            .find(|xattr| !xattr::is_kept(xattr.name.as_bytes()))
        {
            let reason = format!("has the attribute {:?}", foreign.name);
            return Err(self.damage.is(reason));
        }
        if let Some(root) = self.root.take() {
            if !member.path.is_empty() || member.body != Body::Directory {
                return Err(self.damage.is("does not begin with the root of the tree"));
            }
            let directory = Directory {
                attributes: member.attributes,
                xattrs: member.xattrs.clone(),
                above: 0,
                last: Vec::new(),
            };
            let stack = Stack::new(root, directory)
                .map_err(|error| SnapshotError::io("opening the directory", error))?;
            self.stack = Some(stack);
            return Ok(());
        }
        let refused = |reason| {
            let path = member.path.escape_ascii();
            self.damage.is(format!("{reason}: \"{path}\""))
        };
        let (parent, name) = place::split_below(&member.path, &self.path).map_err(refused)?;
        while parent != self.path {
            if self.path.is_empty() {
                let path = member.path.escape_ascii();
                let reason = format!("has an entry apart from its directory: \"{path}\"");
                return Err(self.damage.is(reason));
            }
            self.up()?;
        }
        if let Some(directory) = self.stack.as_mut().and_then(Stack::value) {
            if *name <= *directory.last {
                let path = member.path.escape_ascii();
                let reason = format!("has an entry twice or out of order: \"{path}\"");
                return Err(self.damage.is(reason));
            }
            directory.last = name.to_vec();
        }
        match self.make(member, name) {
            Err(Failure::Refused(reason)) => {
                let path = member.path.escape_ascii();
                Err(self.damage.is(format!("{reason}: \"{path}\"")))
            }
            made => made.map_err(|error| error.at(&member.path)),
        }
    }

    fn data(&mut self, mut bytes: &[u8]) -> Result<(), SnapshotError> {
        let Some(writing) = &mut self.file else {
            return Ok(());
        };
        while !bytes.is_empty() {
            let Some(segment) = writing.segments.last_mut() else {
                return Err(self.damage.is("has more data than its map of holes says"));
            };
            let length = usize::try_from(segment.length)
                .map_or(bytes.len(), |length| length.min(bytes.len()));
            writing
                .file
                .write_all_at(&bytes[..length], segment.offset)
                .map_err(|error| {
                    let path = writing.path.escape_ascii();
                    SnapshotError::io(format!("restoring \"{path}\""), error)
                })?;
            segment.offset += length as u64;
            segment.length -= length as u64;
            if segment.length == 0 {
                writing.segments.pop();
            }
            bytes = &bytes[length..];
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), SnapshotError> {
        if let Some(writing) = self.file.take() {
            let fd = writing.file.as_fd();
            complete(fd, &writing.attributes, &writing.xattrs)
                .and_then(|()| Ok(fstat(fd)?))
                .map(|stat| self.seen.push(Seen::of(&stat)))
                .map_err(|error| error.at(&writing.path))?;
        }
        Ok(())
    }
}

/// Why a member was not made.
#[derive(Debug)]
enum Failure {
    Errno(Errno),
    Refused(&'static str),
    Other(SnapshotError),
}

impl Failure {
    fn at(self, path: &[u8]) -> SnapshotError {
        let action = format!("restoring \"{}\"", path.escape_ascii());
        match self {
            Self::Errno(error) => SnapshotError::io(action, error),
            Self::Refused(reason) => SnapshotError::io(action, std::io::Error::other(reason)),
            Self::Other(error) => error,
        }
    }
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

fn new_file(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    beneath::open(parent, name, flags, Mode::RUSR | Mode::WUSR)
}

/// Metadata of an open file or directory. Changing the owner drops
/// set-user-id and capabilities, and nearly all changes touch the times, hence
/// the order.
fn complete(fd: BorrowedFd<'_>, attributes: &Attributes, xattrs: &[Xattr]) -> Result<(), Failure> {
    let (user, group) = owner(attributes);
    fchown(fd, Some(user), Some(group))?;
    fchmod(fd, Mode::from_raw_mode(attributes.mode))?;
    xattr::write(Of::Open(fd), xattrs)?;
    futimens(fd, &times(attributes))?;
    Ok(())
}

/// Metadata of what cannot be opened, by its name in a directory that nobody
/// else uses.
fn by_name(
    parent: BorrowedFd<'_>,
    name: &[u8],
    attributes: Attributes,
    mode: Option<u32>,
    xattrs: &[Xattr],
) -> Result<(), Failure> {
    let (user, group) = owner(&attributes);
    let no_follow = AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::chownat(parent, name, Some(user), Some(group), no_follow)?;
    if let Some(mode) = mode {
        // Follows links; this is none, it was made just now.
        rustix::fs::chmodat(parent, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
    }
    if !xattrs.is_empty() {
        let handle = beneath::handle(parent, name)?;
        xattr::write(Of::Handle(handle.as_fd()), xattrs)?;
    }
    rustix::fs::utimensat(parent, name, &times(&attributes), no_follow)?;
    Ok(())
}

fn owner(attributes: &Attributes) -> (Uid, Gid) {
    (Uid::from_raw(attributes.uid), Gid::from_raw(attributes.gid))
}

fn times(attributes: &Attributes) -> Timestamps {
    let mtime = Timespec {
        tv_sec: attributes.mtime.seconds,
        tv_nsec: attributes.mtime.nanos.into(),
    };
    Timestamps {
        last_access: mtime,
        last_modification: mtime,
    }
}
