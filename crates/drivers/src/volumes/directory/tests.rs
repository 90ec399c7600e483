#![allow(clippy::unwrap_used, clippy::panic)]
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
    // As a delete of an older hutch did first.
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
fn work_whose_state_is_lost_is_neither_used_nor_removed() {
    for text in [None, Some(""), Some("{\"version\":1,"), Some("\0\0\0\0")] {
        let (_dir, store) = store();
        let key = key("a");
        let state = VolumeState::new(key.clone(), Generation(1));
        let volume = store.create(&state).unwrap();
        fs::write(volume.path.join("workspace/work"), "precious").unwrap();
        let document = volume.path.with_file_name("state.json");
        match text {
            None => fs::remove_file(document).unwrap(),
            Some(text) => fs::write(document, text).unwrap(),
        }
        let Err(VolumeError::Lost { path, .. }) = store.open(&key) else {
            panic!("{text:?}");
        };
        assert_eq!(path, volume.path);
        assert!(matches!(store.create(&state), Err(VolumeError::Exists(_))));
        assert_eq!(fs::read(path.join("workspace/work")).unwrap(), b"precious");

        let aside = store.set_aside(&key).unwrap();
        store.sweep().unwrap();
        store.create(&state).unwrap();
        store.delete(&key).unwrap();
        let work = aside.join("content/workspace/work");
        assert_eq!(fs::read(&work).unwrap(), b"precious");
        assert_eq!(store.list().unwrap(), vec![key.clone()]);
        store.purge(&key).unwrap();
        assert!(!work.exists());
    }
}

#[test]
fn a_state_of_a_newer_hutch_is_not_taken_for_damage() {
    let (_dir, store) = store();
    let key = key("a");
    let volume = store
        .create(&VolumeState::new(key.clone(), Generation(1)))
        .unwrap();
    let document = volume.path.with_file_name("state.json");
    fs::write(document, "{\"version\":2,\"other\":[]}").unwrap();
    assert!(matches!(store.open(&key), Err(VolumeError::State { .. })));
}

#[test]
fn what_a_create_or_a_delete_left_is_swept() {
    let (dir, store) = store();
    let kept = key("kept");
    store
        .create(&VolumeState::new(kept.clone(), Generation(1)))
        .unwrap();
    let volumes = dir.path().join("volumes");
    for place in [NEW, GONE] {
        fs::create_dir_all(volumes.join(place).join("p.a/content/workspace")).unwrap();
    }
    assert_eq!(store.list().unwrap(), vec![kept.clone()]);
    store.sweep().unwrap();
    for place in [NEW, GONE] {
        assert_eq!(fs::read_dir(volumes.join(place)).unwrap().count(), 0);
    }
    store.open(&kept).unwrap();
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

#[test]
fn a_strip_that_died_is_finished_by_the_next_open() {
    let (_dir, store) = store();
    let key = key("a");
    let state = VolumeState::new(key.clone(), Generation(1));
    let volume = store.create(&state).unwrap();
    fs::write(volume.path.join("workspace/kept"), "x").unwrap();
    fs::create_dir_all(volume.path.join("workspace/node_modules/m")).unwrap();
    // What is left of a root may be hostile.
    fs::remove_dir_all(volume.path.join("etc")).unwrap();
    fs::remove_dir_all(volume.path.join("root/var")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), volume.path.join("root/var")).unwrap();
    fs::write(volume.path.with_file_name("stripping"), "").unwrap();
    let volume = store.open(&key).unwrap();
    assert!(volume.path.join("workspace/kept").exists());
    assert!(!volume.path.join("workspace/node_modules").exists());
    assert!(volume.path.join("etc/upper").is_dir());
    assert!(volume.path.join("root/var/cache").is_dir());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(!volume.path.with_file_name("stripping").exists());
}
