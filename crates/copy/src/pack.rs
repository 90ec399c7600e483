//! From a tree to an archive.

use crate::{Copied, CopyError, Source};
use hutch_pax::{Attributes, Body, Member, Mtime, Writer};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;
/// Directories within each other; each is an open descriptor.
const DEPTH: usize = 900;
/// Files with several names that are remembered. Of others each name is a file.
const LINKS: usize = 1 << 16;
/// File systems that hold no files: proc, sysfs, and both of control groups.
const PSEUDO: [i64; 4] = [0x9fa0, 0x6265_6572, 0x27_e0eb, 0x6367_7270];

/// Writes the archive of a source. What vanishes meanwhile is left out, and so
/// are sockets and the file systems of the kernel's own.
///
/// # Errors
/// What cannot be read, and what `to` says.
pub fn pack<W: Write>(source: &Source, to: W) -> Result<(Copied, W), CopyError> {
    let mut pack = Pack {
        writer: Writer::new(to),
        copied: Copied::default(),
        links: HashMap::new(),
        buffer: vec![0; PIECE],
        stack: Vec::new(),
        path: Vec::new(),
    };
    match &source.name {
        None => {
            let directory = openat(&source.at, ".", DIRECTORY, Mode::empty())
                .map_err(|error| CopyError::io(&source.shown, error))?;
            pack.directory(directory)?;
        }
        Some(name) => {
            pack.path.clone_from(name);
            pack.entry(source.at.as_fd(), name, source.follow)
                .map_err(|error| of(error, &source.shown))?;
        }
    }
    while let Some(level) = pack.stack.last_mut() {
        let entry = match level.listing.read() {
            None => {
                let above = level.above;
                pack.stack.pop();
                pack.path.truncate(above);
                continue;
            }
            Some(entry) => entry.map_err(|error| CopyError::io(&pack.path, error))?,
        };
        let name = entry.file_name().to_bytes().to_vec();
        if matches!(name.as_slice(), b"." | b"..") {
            continue;
        }
        let above = pack.path.len();
        if above > 0 {
            pack.path.push(b'/');
        }
        pack.path.extend_from_slice(&name);
        let parent = level
            .listing
            .fd()
            .and_then(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 0));
        let parent = parent.map_err(|error| CopyError::io(&pack.path, error))?;
        let depth = pack.stack.len();
        match pack.entry(parent.as_fd(), &name, false) {
            Err(error) if error.is_gone() => {}
            done => done?,
        }
        // A directory was entered, and takes its name off when it is left.
        if pack.stack.len() > depth {
            if let Some(level) = pack.stack.last_mut() {
                level.above = above;
            }
        } else {
            pack.path.truncate(above);
        }
    }
    let mut to = pack.writer.finish()?;
    to.flush().map_err(hutch_pax::PaxError::from)?;
    Ok((pack.copied, to))
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

struct Pack<W> {
    writer: Writer<W>,
    copied: Copied,
    /// The first name of each file that has several.
    links: HashMap<(u64, u64), Vec<u8>>,
    buffer: Vec<u8>,
    stack: Vec<Level>,
    path: Vec<u8>,
}

struct Level {
    listing: Dir,
    /// Length of the path above this directory.
    above: usize,
}

impl<W: Write> Pack<W> {
    /// Writes the entry of this name, whose path is `self.path`.
    fn entry(&mut self, at: BorrowedFd<'_>, name: &[u8], follow: bool) -> Result<(), CopyError> {
        let no_follow = if follow {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        };
        let flags = if follow {
            AtFlags::empty()
        } else {
            AtFlags::SYMLINK_NOFOLLOW
        };
        let stat = statat(at, name, flags).map_err(|error| self.failed(error))?;
        let body = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let directory = openat(at, name, DIRECTORY | no_follow, Mode::empty())
                    .map_err(|error| self.failed(error))?;
                return self.directory(directory);
            }
            FileType::RegularFile => {
                // What turns out to be something else meanwhile does not block.
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let file = openat(at, name, flags | no_follow, Mode::empty())
                    .map_err(|error| self.failed(error))?;
                return self.file(file);
            }
            FileType::Symlink => {
                let target =
                    readlinkat(at, name, Vec::new()).map_err(|error| self.failed(error))?;
                Body::Symlink(target.into_bytes())
            }
            FileType::Fifo => Body::Fifo,
            FileType::CharacterDevice => Body::CharDevice {
                major: rustix::fs::major(stat.st_rdev),
                minor: rustix::fs::minor(stat.st_rdev),
            },
            FileType::BlockDevice => Body::BlockDevice {
                major: rustix::fs::major(stat.st_rdev),
                minor: rustix::fs::minor(stat.st_rdev),
            },
            _ => return Ok(()),
        };
        self.member(&stat, body)
    }

    fn directory(&mut self, directory: OwnedFd) -> Result<(), CopyError> {
        if self.stack.len() >= DEPTH {
            return Err(self.failed(Errno::NAMETOOLONG));
        }
        let kind = rustix::fs::fstatfs(&directory).map_err(|error| self.failed(error))?;
        if PSEUDO.contains(&(kind.f_type as i64)) {
            return Ok(());
        }
        let stat = fstat(&directory).map_err(|error| self.failed(error))?;
        self.member(&stat, Body::Directory)?;
        let listing = Dir::new(directory).map_err(|error| self.failed(error))?;
        self.stack.push(Level { listing, above: 0 });
        Ok(())
    }

    fn file(&mut self, file: OwnedFd) -> Result<(), CopyError> {
        let stat = fstat(&file).map_err(|error| self.failed(error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.failed(Errno::NOENT));
        }
        if stat.st_nlink > 1 {
            let id = (stat.st_dev, stat.st_ino);
            if let Some(first) = self.links.get(&id) {
                let body = Body::HardLink(first.clone());
                return self.member(&stat, body);
            }
            if self.links.len() < LINKS {
                self.links.insert(id, self.path.clone());
            }
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        self.member(&stat, Body::File { size })?;
        let mut file = File::from(file);
        let mut left = size;
        while left > 0 {
            let want = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
            let got = file
                .read(&mut self.buffer[..want])
                .map_err(|error| CopyError::io(&self.path, error))?;
            if got == 0 {
                let error = std::io::Error::other("it became shorter while it was read");
                return Err(CopyError::io(&self.path, error));
            }
            self.writer.data(&self.buffer[..got])?;
            left -= got as u64;
        }
        self.copied.bytes += size;
        Ok(())
    }

    fn member(&mut self, stat: &Stat, body: Body) -> Result<(), CopyError> {
        self.copied.entries += 1;
        let member = Member {
            path: self.path.clone(),
            attributes: attributes(stat),
            xattrs: Vec::new(),
            body,
        };
        Ok(self.writer.member(&member)?)
    }

    fn failed(&self, error: Errno) -> CopyError {
        CopyError::io(&self.path, error)
    }
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

/// An error about the source itself names it as it was given.
fn of(error: CopyError, shown: &[u8]) -> CopyError {
    match error {
        CopyError::Io { source, .. } => CopyError::io(shown, source),
        other => other,
    }
}
