//! Volumes as plain directories: no disk limit, no snapshots by the file system.
//!
//! `<data>/volumes/<project>/<name>/` holds `state.json` and `content/`, whose
//! parts are `workspace/`, `root/` (what is writable besides), and `usr/` and
//! `etc/` (the upper and work directories of the overlays).

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hutch_images::skeleton;
use rustix::io::Errno;

use super::confined::{make_dir, open_dir};
use super::{Volume, VolumeError, VolumeState, VolumeStore, state, tree};
use crate::SandboxKey;

const CONTENT: &str = "content";
const WORKSPACE: &str = "workspace";
/// The parts that a strip drops and makes anew.
const OTHER_PARTS: [&str; 3] = ["root", "usr", "etc"];

/// Volumes below `<data>/volumes`, a directory that only root may enter.
#[derive(Debug)]
pub struct DirectoryVolumes {
    path: PathBuf,
    root: OwnedFd,
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
        Ok(Self { path, root })
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
        let path = self
            .path
            .join(sandbox.project.as_str())
            .join(sandbox.name.as_str())
            .join(CONTENT);
        Ok(Volume { path, dir, state })
    }
}

impl VolumeStore for DirectoryVolumes {
    fn create(&self, state: &VolumeState) -> Result<Volume, VolumeError> {
        let sandbox = &state.sandbox;
        let project = make_dir(&self.root, sandbox.project.as_str(), 0o700)
            .map_err(failed(sandbox, "make the project's directory"))?;
        let name = sandbox.name.as_str();
        match rustix::fs::mkdirat(&project, name, rustix::fs::Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) if self.is_whole(sandbox) => {
                return Err(VolumeError::Exists(sandbox.clone()));
            }
            // A create that died half way has no state yet: start over.
            Err(Errno::EXIST) => {
                tree::remove(&project, name).map_err(failed(sandbox, "remove a half-made one"))?;
                rustix::fs::mkdirat(&project, name, rustix::fs::Mode::RWXU)
                    .map_err(failed(sandbox, "make"))?;
            }
            Err(cause) => return Err(failed(sandbox, "make")(cause)),
        }
        let made = open_dir(&project, name)
            .and_then(|home| fill(&home).map(|()| home))
            .map_err(failed(sandbox, "fill"))
            .and_then(|home| write_state(&home, state).map(|()| home))
            .and_then(|home| self.volume(&home, state.clone()));
        if made.is_err() {
            let _ = tree::remove(&project, name);
        }
        made
    }

    fn open(&self, sandbox: &SandboxKey) -> Result<Volume, VolumeError> {
        let home = self.find(sandbox)?;
        let found = match state::read(&home) {
            Ok(found) => found,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                return Err(VolumeError::NotFound(sandbox.clone()));
            }
            Err(cause) => return Err(failed_io(sandbox, "read the state")(cause)),
        };
        let unreadable = |reason: String| VolumeError::State {
            sandbox: sandbox.clone(),
            reason,
        };
        let found = found.map_err(unreadable)?;
        if found.sandbox != *sandbox {
            return Err(unreadable(format!("it belongs to {}", found.sandbox)));
        }
        self.volume(&home, found)
    }

    fn set_state(&self, state: &VolumeState) -> Result<(), VolumeError> {
        write_state(&self.find(&state.sandbox)?, state)
    }

    fn strip(&self, sandbox: &SandboxKey) -> Result<(), VolumeError> {
        let home = self.find(sandbox)?;
        let content = open_dir(&home, CONTENT).map_err(failed(sandbox, "open the content"))?;
        for part in OTHER_PARTS {
            tree::remove(&content, part).map_err(failed(sandbox, "drop the system's part"))?;
        }
        tree::prune_node_modules(&content, WORKSPACE)
            .map_err(failed(sandbox, "drop node_modules"))?;
        fill(&home).map_err(failed(sandbox, "fill"))
    }

    fn delete(&self, sandbox: &SandboxKey) -> Result<(), VolumeError> {
        let project = match open_dir(&self.root, sandbox.project.as_str()) {
            Ok(project) => project,
            Err(Errno::NOENT) => return Ok(()),
            Err(cause) => return Err(failed(sandbox, "open")(cause)),
        };
        tree::remove(&project, sandbox.name.as_str()).map_err(failed(sandbox, "remove"))
    }

    fn list(&self) -> Result<Vec<SandboxKey>, VolumeError> {
        let mut found = Vec::new();
        for project in names(&self.path) {
            for name in names(&self.path.join(&project)) {
                // Also what a delete that died left, which has no state any more.
                if let (Ok(project), Ok(name)) = (project.parse(), name.parse()) {
                    found.push(SandboxKey { project, name });
                }
            }
        }
        Ok(found)
    }
}

impl DirectoryVolumes {
    fn is_whole(&self, sandbox: &SandboxKey) -> bool {
        !matches!(self.open(sandbox), Err(VolumeError::NotFound(_)))
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

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

fn write_state(home: &OwnedFd, state: &VolumeState) -> Result<(), VolumeError> {
    state::write(home, state).map_err(failed_io(&state.sandbox, "write the state"))
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use hutch_protocol::{BackupId, Generation, ProjectId};

    use super::*;

    fn key(name: &str) -> SandboxKey {
        SandboxKey {
            project: ProjectId::random(),
            name: name.parse().unwrap(),
        }
    }

    fn store() -> (tempfile::TempDir, DirectoryVolumes) {
        let dir = tempfile::tempdir().unwrap();
        let store = DirectoryVolumes::open(dir.path()).unwrap();
        (dir, store)
    }

    #[test]
    fn a_volume_keeps_its_state_and_is_made_once() {
        let (_dir, store) = store();
        let key = key("a");
        assert!(matches!(store.open(&key), Err(VolumeError::NotFound(_))));
        let mut state = VolumeState::new(key.clone(), Generation(3));
        store.create(&state).unwrap();
        assert!(matches!(store.create(&state), Err(VolumeError::Exists(_))));
        state.dirty = true;
        state.base = Some(BackupId::random());
        store.set_state(&state).unwrap();
        assert_eq!(store.open(&key).unwrap().state, state);
        assert_eq!(store.list().unwrap(), vec![key.clone()]);
        store.delete(&key).unwrap();
        store.delete(&key).unwrap();
        assert!(matches!(store.open(&key), Err(VolumeError::NotFound(_))));
    }

    #[test]
    fn a_half_removed_volume_is_listed_and_can_be_removed() {
        let (_dir, store) = store();
        let key = key("a");
        let volume = store
            .create(&VolumeState::new(key.clone(), Generation(1)))
            .unwrap();
        // What a delete removes first.
        fs::remove_file(volume.path.with_file_name("state.json")).unwrap();
        assert!(matches!(store.open(&key), Err(VolumeError::NotFound(_))));
        assert_eq!(store.list().unwrap(), vec![key.clone()]);
        store.delete(&key).unwrap();
        assert_eq!(store.list().unwrap(), Vec::new());
    }

    #[test]
    fn strip_keeps_the_workspace_alone() {
        let (_dir, store) = store();
        let key = key("a");
        let volume = store
            .create(&VolumeState::new(key.clone(), Generation(1)))
            .unwrap();
        fs::write(volume.path.join("workspace/kept"), "x").unwrap();
        fs::create_dir_all(volume.path.join("workspace/p/node_modules/m")).unwrap();
        fs::write(volume.path.join("root/home/gone"), "x").unwrap();
        fs::write(volume.path.join("usr/upper/gone"), "x").unwrap();
        store.strip(&key).unwrap();
        assert!(volume.path.join("workspace/kept").exists());
        assert!(!volume.path.join("workspace/p/node_modules").exists());
        assert!(!volume.path.join("root/home/gone").exists());
        assert!(!volume.path.join("usr/upper/gone").exists());
        assert!(volume.path.join("root/tmp").is_dir());
    }

    #[test]
    fn a_half_made_volume_is_made_anew() {
        let (dir, store) = store();
        let key = key("a");
        let home = dir
            .path()
            .join("volumes")
            .join(key.project.as_str())
            .join("a");
        fs::create_dir_all(home.join("content/junk")).unwrap();
        let volume = store.create(&VolumeState::new(key, Generation(1))).unwrap();
        assert!(!volume.path.join("junk").exists());
    }
}
