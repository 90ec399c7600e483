//! From an archive to a tree, whoever sent it: nothing is made outside the
//! target, no link is gone through, no device is made.

use crate::place::{Place, into, place};
use crate::{Copied, CopyError, Target, TargetFault, beneath};
use beneath::Fresh;
use hutch_pax::{Attributes, Body, Limits, Member, Reader, Segment};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// Bytes that are written at a time.
const PIECE: usize = 256 << 10;

/// To whom files belong and what their modes may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owners {
    /// Owners as the archive has them; else whoever unpacks.
    pub keep: bool,
    /// Set-user-id and set-group-id as the archive has them; else none.
    pub set_id: bool,
}

/// Unpacks an archive to its end.
///
/// A file takes its name once it is whole: a copy that breaks off leaves no half
/// of one. Whole entries that came before stay.
///
/// # Errors
/// [`CopyError::Target`] when the target does not suit, [`CopyError::Refused`] for
/// an archive that leads elsewhere, and what the kernel says.
pub fn unpack<R: Read>(from: R, target: Target<'_>, owners: Owners) -> Result<Copied, CopyError> {
    let mut reader = Reader::foreign(from, Limits::default());
    let mut first = reader.member()?;
    let place = match (target, &first) {
        (Target::Into(path), _) => into(path)?,
        (Target::As(path, expect), Some(first)) => place(path, expect, first)?,
        (Target::As(..), None) => {
            return Err(CopyError::refused(
                b"",
                "is empty, and something was asked for",
            ));
        }
    };
    let mut unpack = Unpack {
        place,
        owners,
        directories: Vec::new(),
        parent: None,
        copied: Copied::default(),
        buffer: vec![0; PIECE],
    };
    while let Some(member) = match first.take() {
        Some(member) => Some(member),
        None => reader.member()?,
    } {
        unpack.member(&mut reader, &member)?;
    }
    unpack.leave(None)?;
    Ok(unpack.copied)
}

struct Unpack {
    place: Place,
    owners: Owners,
    /// Directories that get their metadata when all in them is there.
    directories: Vec<(Vec<u8>, Attributes)>,
    /// The directory of the last entry.
    parent: Option<(Vec<u8>, OwnedFd)>,
    copied: Copied,
    buffer: Vec<u8>,
}

impl Unpack {
    fn member<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        member: &Member,
    ) -> Result<(), CopyError> {
        let path = self.place.mapping.place(&member.path)?;
        self.leave(Some(&path))?;
        self.copied.entries += 1;
        if path.is_empty() {
            // The target itself: it was there before, and stays what it is.
            return match member.body {
                Body::Directory => Ok(()),
                _ => Err(CopyError::refused(
                    &member.path,
                    "has a file without a name",
                )),
            };
        }
        let (above, name) = crate::names::split(&path);
        if self.parent.as_ref().is_none_or(|(at, _)| at != above) {
            let fd = beneath::directory(self.place.base.as_fd(), above)?;
            self.parent = Some((above.to_vec(), fd));
        }
        let Some((_, parent)) = self.parent.take() else {
            return Ok(());
        };
        let made = self.make(reader, member, &parent, &path, name);
        self.parent = Some((above.to_vec(), parent));
        made
    }

    fn make<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        member: &Member,
        parent: &OwnedFd,
        path: &[u8],
        name: &[u8],
    ) -> Result<(), CopyError> {
        let failed = |error| match error {
            Errno::ISDIR => CopyError::target(
                path,
                TargetFault::IsDirectory,
                "a directory is there, and only a directory can be copied over it",
            ),
            error => CopyError::io(path, error),
        };
        let attributes = &member.attributes;
        match &member.body {
            Body::Directory => return self.directory(parent, path, name, attributes),
            Body::CharDevice { .. } | Body::BlockDevice { .. } => {
                return Err(CopyError::refused(&member.path, "has a device node"));
            }
            _ => {}
        }
        let fresh = Fresh::new(parent).map_err(failed)?;
        match &member.body {
            Body::File { size } => {
                let whole = Segment {
                    offset: 0,
                    length: *size,
                };
                self.file(reader, attributes, &fresh, path, *size, &[whole])?;
            }
            Body::Sparse { size, segments } => {
                self.file(reader, attributes, &fresh, path, *size, segments)?;
            }
            Body::Symlink(target) => {
                rustix::fs::symlinkat(&target[..], parent, fresh.name()).map_err(failed)?;
                self.by_name(&fresh, attributes).map_err(failed)?;
            }
            Body::Fifo => {
                let mode = Mode::from_raw_mode(attributes.mode & 0o777);
                rustix::fs::mknodat(parent, fresh.name(), FileType::Fifo, mode, 0)
                    .map_err(failed)?;
                self.by_name(&fresh, attributes).map_err(failed)?;
            }
            Body::HardLink(target) => self.link(target, &fresh)?,
            Body::Directory | Body::CharDevice { .. } | Body::BlockDevice { .. } => {}
        }
        fresh.rename(name).map_err(failed)
    }

    fn directory(
        &mut self,
        parent: &OwnedFd,
        path: &[u8],
        name: &[u8],
        attributes: &Attributes,
    ) -> Result<(), CopyError> {
        match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                let found = beneath::kind(parent.as_fd(), name);
                if found.map_err(|error| CopyError::io(path, error))? != Some(FileType::Directory) {
                    return Err(CopyError::target(
                        path,
                        TargetFault::NotDirectory,
                        "a directory cannot be copied over what is none",
                    ));
                }
            }
            Err(error) => return Err(CopyError::io(path, error)),
        }
        self.directories.push((path.to_vec(), *attributes));
        Ok(())
    }

    fn file<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        attributes: &Attributes,
        fresh: &Fresh<'_>,
        path: &[u8],
        size: u64,
        segments: &[Segment],
    ) -> Result<(), CopyError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = beneath::open(fresh.parent(), fresh.name().as_bytes(), flags, mode)
            .map_err(|error| CopyError::io(path, error))?;
        let file = File::from(file);
        for segment in segments {
            let (mut offset, mut left) = (segment.offset, segment.length);
            while left > 0 {
                let want = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
                let got = reader.data(&mut self.buffer[..want])?;
                file.write_all_at(&self.buffer[..got], offset)
                    .map_err(|error| CopyError::io(path, error))?;
                offset += got as u64;
                left -= got as u64;
            }
            self.copied.bytes += segment.length;
        }
        file.set_len(size)
            .map_err(|error| CopyError::io(path, error))?;
        self.complete(&file.into(), attributes)
            .map_err(|error| CopyError::io(path, error))
    }

    /// Another name of a file that is below the target.
    fn link(&mut self, target: &[u8], fresh: &Fresh<'_>) -> Result<(), CopyError> {
        let first = self.place.mapping.place(target)?;
        let (above, name) = crate::names::split(&first);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let missing = || CopyError::refused(target, "has a hard link to what is no file of it");
        let above = beneath::open(self.place.base.as_fd(), above, flags, Mode::empty());
        let above = above.map_err(|_| missing())?;
        match beneath::kind(above.as_fd(), name) {
            Ok(Some(FileType::RegularFile)) => {}
            _ => return Err(missing()),
        }
        rustix::fs::linkat(&above, name, fresh.parent(), fresh.name(), AtFlags::empty())
            .map_err(|error| CopyError::io(&first, error))
    }

    /// Completes the directories that `path` is not below; all for `None`.
    fn leave(&mut self, path: Option<&[u8]>) -> Result<(), CopyError> {
        while let Some((at, attributes)) = self.directories.last() {
            let rest = path.and_then(|path| path.strip_prefix(at.as_slice()));
            if rest.is_some_and(|rest| rest.starts_with(b"/")) {
                break;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let done = beneath::open(self.place.base.as_fd(), at, flags, Mode::empty())
                .and_then(|fd| self.complete(&fd, attributes));
            done.map_err(|error| CopyError::io(at, error))?;
            self.directories.pop();
        }
        Ok(())
    }

    /// Metadata of an open file or directory; the owner first, as changing it
    /// clears bits of the mode.
    fn complete(&self, fd: &OwnedFd, attributes: &Attributes) -> Result<(), Errno> {
        if self.owners.keep {
            let (user, group) = owner(attributes);
            rustix::fs::fchown(fd, Some(user), Some(group))?;
        }
        let kept = if self.owners.set_id { 0o7777 } else { 0o1777 };
        rustix::fs::fchmod(fd, Mode::from_raw_mode(attributes.mode & kept))?;
        rustix::fs::futimens(fd, &times(attributes))
    }

    /// Metadata of what cannot be opened.
    fn by_name(&self, fresh: &Fresh<'_>, attributes: &Attributes) -> Result<(), Errno> {
        let no_follow = AtFlags::SYMLINK_NOFOLLOW;
        let (parent, name) = (fresh.parent(), fresh.name());
        if self.owners.keep {
            let (user, group) = owner(attributes);
            rustix::fs::chownat(parent, name, Some(user), Some(group), no_follow)?;
        }
        rustix::fs::utimensat(parent, name, &times(attributes), no_follow)
    }
}

fn owner(attributes: &Attributes) -> (Uid, Gid) {
    (Uid::from_raw(attributes.uid), Gid::from_raw(attributes.gid))
}

fn times(attributes: &Attributes) -> Timestamps {
    let time = Timespec {
        tv_sec: attributes.mtime.seconds,
        tv_nsec: attributes.mtime.nanos.into(),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}
