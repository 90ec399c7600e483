//! Replacing a file's content so that nobody ever sees half of it.
//!
//! New content is written beside the target and renamed over it, with the mode
//! and owner of what was there. A target with several hard links keeps its
//! inode: there the complete new content is copied into it. A symbolic link is
//! followed first, so that the link stays and what it names changes.

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many links are followed, as the kernel does.
const LINKS_MAX: usize = 40;
/// The mode of a file that did not exist.
const NEW_MODE: u32 = 0o644;

/// New content on its way; dropped without [`Replacement::commit`] it leaves no trace.
#[derive(Debug)]
pub(super) struct Replacement {
    target: PathBuf,
    old: Option<Metadata>,
    temporary: Option<PathBuf>,
    file: File,
}

impl Replacement {
    /// Begins to replace what is at `path`; makes missing parent directories.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        let target = follow(path)?;
        let old = match std::fs::symlink_metadata(&target) {
            Ok(metadata) if metadata.is_dir() => return Err(Errno::ISDIR.into()),
            Ok(metadata) if !metadata.is_file() => return Err(Errno::OPNOTSUPP.into()),
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let directory = target.parent().ok_or(Errno::ISDIR)?;
        if target.file_name().is_none() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(Errno::ISDIR.into());
        }
        if old.is_none() {
            std::fs::create_dir_all(directory)?;
        }
        let mut name = OsString::from(".sandboxd-");
        name.push(uuid::Uuid::new_v4().simple().to_string());
        let temporary = directory.join(name);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&temporary, flags, Mode::from_raw_mode(0o600))?;
        Ok(Self {
            target,
            old,
            temporary: Some(temporary),
            file: file.into(),
        })
    }

    /// Where the new content goes.
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts the new content in place.
    pub(super) fn commit(mut self) -> io::Result<()> {
        let Some(temporary) = self.temporary.clone() else {
            return Ok(());
        };
        match &self.old {
            Some(old) if old.nlink() > 1 => return self.copy_in_place(),
            Some(old) => {
                // The owner first: changing it clears the set-user-id bits.
                let (uid, gid) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
                rustix::fs::fchown(&self.file, Some(uid), Some(gid))?;
                rustix::fs::fchmod(&self.file, Mode::from_raw_mode(old.mode() & 0o7777))?;
            }
            None => rustix::fs::fchmod(&self.file, Mode::from_raw_mode(NEW_MODE))?,
        }
        match std::fs::rename(&temporary, &self.target) {
            Ok(()) => {
                self.temporary = None;
                Ok(())
            }
            // A mount point cannot be renamed over, but it can be written.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => self.copy_in_place(),
            Err(error) => Err(error),
        }
    }

    fn copy_in_place(mut self) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut target = File::from(rustix::fs::open(&self.target, flags, Mode::empty())?);
        self.file.seek(SeekFrom::Start(0))?;
        let length = io::copy(&mut self.file, &mut target)?;
        target.set_len(length)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            let _ = rustix::fs::unlinkat(CWD, &temporary, AtFlags::empty());
        }
    }
}

/// Where writing through `path` lands, be it there or not.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                let link = std::fs::read_link(&path)?;
                path = path
                    .parent()
                    .map_or_else(|| link.clone(), |parent| parent.join(&link));
            }
            _ => return Ok(path),
        }
    }
    Err(Errno::LOOP.into())
}
