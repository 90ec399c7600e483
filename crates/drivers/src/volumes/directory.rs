//! Volumes as plain directories: no disk limit, no snapshots by the file system.
//!
//! `<data>/volumes/<project>/<name>/` holds `state.json` and `content/`, whose
//! parts are `workspace/`, `root/` (what is writable besides), and `usr/` and
//! `etc/` (the upper and work directories of the overlays).
//!
//! A volume comes to that place and leaves it by one rename. It is made below
//! `<data>/volumes/.new`, removed below `.gone`, and what nobody can name waits
//! below `.lost`, always as `<project>.<name>`. Filled ones that have no owner
//! yet are in `.blank-1`.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hutch_failpoint::{Injected, failpoint};
use hutch_images::skeleton;
use rustix::fs::{Access, AtFlags, Mode, OFlags, fsync, openat, unlinkat};
use rustix::io::Errno;
use uuid::Uuid;

use super::blanks::Blanks;
use super::confined::{make_dir, open_dir};
use super::state::{self, Unreadable};
use super::{Volume, VolumeError, VolumeState, VolumeStore, tree};
use crate::SandboxKey;

const CONTENT: &str = "content";
const WORKSPACE: &str = "workspace";
const NEW: &str = ".new";
const GONE: &str = ".gone";
const LOST: &str = ".lost";
/// There while a strip is under way; the next open finishes it.
const STRIPPING: &str = "stripping";
/// The parts that a strip drops and makes anew.
const OTHER_PARTS: [&str; 3] = ["root", "usr", "etc"];

/// Volumes below `<data>/volumes`, a directory that only root may enter.
#[derive(Debug)]
pub struct DirectoryVolumes {
    path: PathBuf,
    root: OwnedFd,
    blanks: Option<Blanks>,
}

impl DirectoryVolumes {
    /// Opens the store of a data directory, making it if there is none.
    ///
    /// # Errors
    /// The directory cannot be made or is not one.
    pub fn open(data_dir: &Path) -> io::Result<Self> {
        // What stands between the volumes and the machine's other users: a
        // file that a sandbox's root makes belongs to root on disk.
        let path = std::path::absolute(data_dir)?.join("volumes");
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(cause),
            _ => {}
        }
        let root = OwnedFd::from(fs::File::open(&path)?);
        rustix::fs::fchmod(&root, rustix::fs::Mode::RWXU)?;
        Ok(Self {
            path,
            root,
            blanks: None,
        })
    }

    /// From now on makes empty volumes ahead, on a thread of its own, for as
    /// long as this store is there.
    ///
    /// # Errors
    /// The directory for them cannot be made, or there is no thread.
    pub fn with_blanks(mut self) -> io::Result<Self> {
        self.blanks = Some(Blanks::keep(&self.root, fill)?);
        Ok(self)
    }

    /// A filled volume without state, as `draft` in `side`.
    fn draft(&self, side: &OwnedFd, draft: &str) -> rustix::io::Result<OwnedFd> {
        let blank = match &self.blanks {
            Some(blanks) => blanks.take(&self.root, side, draft)?,
            None => None,
        };
        if let Some(home) = blank {
            let _ = failpoint!("volume.made");
            return Ok(home);
        }
        let home = make_dir(side, draft, 0o700)?;
        let _ = failpoint!("volume.made");
        fill(&home)?;
        Ok(home)
    }

    fn find(&self, sandbox: &SandboxKey) -> Result<OwnedFd, VolumeError> {
        let place = format!("{}/{}", sandbox.project.as_str(), sandbox.name.as_str());
        open_dir(&self.root, &place).map_err(|cause| match cause {
            Errno::NOENT => VolumeError::NotFound(sandbox.clone()),
            cause => failed(sandbox, "open")(cause),
        })
    }

    fn volume(&self, home: &OwnedFd, state: VolumeState) -> Result<Volume, VolumeError> {
        let sandbox = &state.sandbox;
        let dir = open_dir(home, CONTENT).map_err(failed(sandbox, "open the content"))?;
        let path = self.home(sandbox).join(CONTENT);
        Ok(Volume { path, dir, state })
    }

    fn home(&self, sandbox: &SandboxKey) -> PathBuf {
        self.path
            .join(sandbox.project.as_str())
            .join(sandbox.name.as_str())
    }

    /// Opens the directory of a project; with its name on disk if it is new.
    fn project(&self, sandbox: &SandboxKey) -> rustix::io::Result<OwnedFd> {
        let name = sandbox.project.as_str();
        match rustix::fs::mkdirat(&self.root, name, rustix::fs::Mode::RWXU) {
            Ok(()) => rustix::fs::fsync(&self.root)?,
            Err(Errno::EXIST) => {}
            Err(cause) => return Err(cause),
        }
        open_dir(&self.root, name)
    }

    /// Moves a volume from its place to `side`, under `name`. `Ok(false)` if
    /// there is none.
    fn move_to(
        &self,
        sandbox: &SandboxKey,
        side: &OwnedFd,
        name: &str,
    ) -> rustix::io::Result<bool> {
        let project = match open_dir(&self.root, sandbox.project.as_str()) {
            Err(Errno::NOENT) => return Ok(false),
            project => project?,
        };
        match rustix::fs::renameat(&project, sandbox.name.as_str(), side, name) {
            Err(Errno::NOENT) => return Ok(false),
            moved => moved?,
        }
        rustix::fs::fsync(&project)?;
        Ok(true)
    }

    fn side(&self, name: &str) -> rustix::io::Result<OwnedFd> {
        make_dir(&self.root, name, 0o700)
    }
}

/// The name of a volume beside its place.
fn aside(sandbox: &SandboxKey) -> String {
    format!("{}.{}", sandbox.project.as_str(), sandbox.name.as_str())
}

/// Whether nobody has worked in the volume at `home` yet.
fn is_unused(home: &OwnedFd) -> rustix::io::Result<bool> {
    let workspace = match open_dir(home, "content/workspace") {
        Err(Errno::NOENT) => return Ok(true),
        workspace => workspace?,
    };
    for entry in rustix::fs::Dir::read_from(&workspace)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

impl VolumeStore for DirectoryVolumes {
    fn create(&self, state: &VolumeState) -> Result<Volume, VolumeError> {
        let sandbox = &state.sandbox;
        let project = self
            .project(sandbox)
            .map_err(failed(sandbox, "make the project's directory"))?;
        let side = self.side(NEW).map_err(failed(sandbox, "make"))?;
        let (draft, name) = (aside(sandbox), sandbox.name.as_str());
        tree::remove(&side, &draft).map_err(failed(sandbox, "remove a half-made one"))?;
        // What a create of an older hutch left, which has no state yet.
        if matches!(self.open(sandbox), Err(VolumeError::NotFound(_))) {
            self.delete(sandbox)?;
        }
        let made = self
            .draft(&side, &draft)
            .map_err(failed(sandbox, "fill"))
            .and_then(|home| injected(failpoint!("volume.filled"), sandbox).map(|()| home))
            .and_then(|home| {
                state::first(&home, state)
                    .map_err(failed_io(sandbox, "write the state"))
                    .map(|()| home)
            })
            .and_then(|home| {
                let flags = rustix::fs::RenameFlags::NOREPLACE;
                match rustix::fs::renameat_with(&side, &draft, &project, name, flags) {
                    Err(Errno::EXIST) => return Err(VolumeError::Exists(sandbox.clone())),
                    moved => moved.map_err(failed(sandbox, "move to its place"))?,
                }
                // This alone makes it durable: nobody has worked in it yet, so
                // a volume that a power cut takes away is simply made again.
                rustix::fs::fsync(&project).map_err(failed(sandbox, "sync"))?;
                self.volume(&home, state.clone())
            });
        if made.is_err() {
            let _ = tree::remove(&side, &draft);
        }
        made
    }

    fn open(&self, sandbox: &SandboxKey) -> Result<Volume, VolumeError> {
        let home = self.find(sandbox)?;
        if rustix::fs::accessat(&home, STRIPPING, Access::EXISTS, AtFlags::empty()).is_ok() {
            finish_strip(&home, sandbox)?;
        }
        let unreadable = |reason: String| VolumeError::State {
            sandbox: sandbox.clone(),
            reason,
        };
        let reason = match state::read(&home) {
            Ok(Ok(found)) if found.sandbox == *sandbox => return self.volume(&home, found),
            Ok(Ok(found)) => return Err(unreadable(format!("it belongs to {}", found.sandbox))),
            Ok(Err(Unreadable::Newer(reason))) => return Err(unreadable(reason)),
            Ok(Err(Unreadable::Damaged(reason))) => format!("does not parse ({reason})"),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => "is gone".to_owned(),
            Err(cause) => return Err(failed_io(sandbox, "read the state")(cause)),
        };
        // A create of an older hutch that died has no state and no work.
        if is_unused(&home).map_err(failed(sandbox, "look into the workspace"))? {
            return Err(VolumeError::NotFound(sandbox.clone()));
        }
        Err(VolumeError::Lost {
            sandbox: sandbox.clone(),
            path: self.home(sandbox).join(CONTENT),
            reason,
        })
    }

    fn set_state(&self, state: &VolumeState) -> Result<(), VolumeError> {
        write_state(&self.find(&state.sandbox)?, state)
    }

    fn strip(&self, sandbox: &SandboxKey) -> Result<(), VolumeError> {
        let home = self.find(sandbox)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let marked = openat(&home, STRIPPING, flags, Mode::from_raw_mode(0o600));
        marked
            .and_then(|_| fsync(&home))
            .map_err(failed(sandbox, "note the strip"))?;
        finish_strip(&home, sandbox)
    }

    fn set_aside(&self, sandbox: &SandboxKey) -> Result<PathBuf, VolumeError> {
        let fail = || failed(sandbox, "set aside");
        let side = self.side(LOST).map_err(fail())?;
        let name = format!("{}.{}", aside(sandbox), Uuid::new_v4().simple());
        match self.move_to(sandbox, &side, &name) {
            Ok(true) => {}
            Ok(false) => return Err(VolumeError::NotFound(sandbox.clone())),
            Err(cause) => return Err(fail()(cause)),
        }
        rustix::fs::fsync(&side).map_err(fail())?;
        Ok(self.path.join(LOST).join(name))
    }

    fn delete(&self, sandbox: &SandboxKey) -> Result<(), VolumeError> {
        let remove = || {
            let side = self.side(GONE)?;
            let name = aside(sandbox);
            // What an earlier delete left, and what this one moved there.
            tree::remove(&side, &name)?;
            if self.move_to(sandbox, &side, &name)? {
                tree::remove(&side, &name)?;
            }
            Ok(())
        };
        remove().map_err(failed(sandbox, "remove"))?;
        injected(failpoint!("volume.removed"), sandbox)
    }

    fn purge(&self, sandbox: &SandboxKey) -> Result<(), VolumeError> {
        self.delete(sandbox)?;
        let lost = self.path.join(LOST);
        let ours = format!("{}.", aside(sandbox));
        for name in names(&lost).iter().filter(|name| name.starts_with(&ours)) {
            self.side(LOST)
                .and_then(|side| tree::remove(&side, name))
                .map_err(failed(sandbox, "remove what was set aside"))?;
        }
        Ok(())
    }

    fn sweep(&self) -> io::Result<()> {
        let mut swept = Ok(());
        for place in [NEW, GONE] {
            for name in names(&self.path.join(place)) {
                let removed = self.side(place).and_then(|side| tree::remove(&side, &name));
                if let Err(cause) = removed {
                    let failed = format!("removing {place}/{name}: {cause}");
                    swept = Err(io::Error::new(cause.kind(), failed));
                }
            }
        }
        swept
    }

    fn list(&self) -> Result<Vec<SandboxKey>, VolumeError> {
        let mut found = Vec::new();
        for project in names(&self.path) {
            for name in names(&self.path.join(&project)) {
                // Also what lost its state.
                if let (Ok(project), Ok(name)) = (project.parse(), name.parse()) {
                    found.push(SandboxKey { project, name });
                }
            }
        }
        for name in names(&self.path.join(LOST)) {
            let mut parts = name.splitn(3, '.');
            if let (Some(Ok(project)), Some(Ok(name))) =
                (parts.next().map(str::parse), parts.next().map(str::parse))
            {
                found.push(SandboxKey { project, name });
            }
        }
        Ok(found)
    }
}

/// Makes what is missing of the content: parts and skeleton.
fn fill(home: &OwnedFd) -> rustix::io::Result<()> {
    let content = make_dir(home, CONTENT, 0o700)?;
    make_dir(&content, WORKSPACE, 0o755)?;
    let root = make_dir(&content, "root", 0o755)?;
    skeleton::populate(root.as_fd())?;
    for part in ["usr", "etc"] {
        let part = make_dir(&content, part, 0o755)?;
        make_dir(&part, "upper", 0o755)?;
        make_dir(&part, "work", 0o755)?;
    }
    Ok(())
}

/// Does what a strip does, from wherever an earlier one died. What it drops is
/// dropped whole: a half-stripped root must not be filled in, since its links
/// are the sandbox's.
fn finish_strip(home: &OwnedFd, sandbox: &SandboxKey) -> Result<(), VolumeError> {
    let content = open_dir(home, CONTENT).map_err(failed(sandbox, "open the content"))?;
    for part in OTHER_PARTS {
        tree::remove(&content, part).map_err(failed(sandbox, "drop the system's part"))?;
    }
    injected(failpoint!("volume.stripping"), sandbox)?;
    tree::prune_node_modules(&content, WORKSPACE).map_err(failed(sandbox, "drop node_modules"))?;
    fill(home)
        .and_then(|()| unlinkat(home, STRIPPING, AtFlags::empty()))
        .and_then(|()| fsync(home))
        .map_err(failed(sandbox, "fill"))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

fn write_state(home: &OwnedFd, state: &VolumeState) -> Result<(), VolumeError> {
    state::write(home, state).map_err(failed_io(&state.sandbox, "write the state"))
}

fn injected(result: Result<(), Injected>, sandbox: &SandboxKey) -> Result<(), VolumeError> {
    result.map_err(|error| failed_io(sandbox, "go on")(error.into()))
}

fn failed(sandbox: &SandboxKey, step: &str) -> impl FnOnce(Errno) -> VolumeError {
    let fail = failed_io(sandbox, step);
    move |cause| fail(cause.into())
}

fn failed_io(sandbox: &SandboxKey, step: &str) -> impl FnOnce(io::Error) -> VolumeError {
    let (sandbox, step) = (sandbox.clone(), step.to_owned());
    move |cause| VolumeError::Io {
        sandbox,
        step,
        cause,
    }
}

#[cfg(test)]
mod tests;
