//! A save that dies at any step leaves the store as it was.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::fs::{self, File};
use std::path::Path;

use super::Step;
use crate::durable::failing;
use crate::{LocalStore, SaveMeta, SnapshotError};

thread_local! {
    static CRASH_AT: Cell<Option<Step>> = const { Cell::new(None) };
}

/// Fails if the test wants the save to die here.
pub(super) fn crash(step: Step) -> Result<(), SnapshotError> {
    match CRASH_AT.get() == Some(step) {
        true => Err(SnapshotError::Cancelled),
        false => Ok(()),
    }
}

fn names(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn a_save_that_dies_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), b"content").unwrap();
    let open = || File::open(&tree).unwrap().into();
    let tmp = dir.path().join("store/tmp");

    let store = LocalStore::open(&dir.path().join("store")).unwrap();
    let first = store.save(open(), SaveMeta::default()).unwrap();
    let layers = dir.path().join("store/layers");
    for step in [
        Step::Begun,
        Step::Packed,
        Step::Described,
        Step::ReadBack,
        Step::Layered,
    ] {
        // Something new for a layer on top of the first.
        fs::write(tree.join("new"), format!("{step:?}")).unwrap();
        CRASH_AT.set(Some(step));
        let meta = SaveMeta {
            base: Some(first.id),
            ..SaveMeta::default()
        };
        assert!(store.save(open(), meta).is_err());
        assert_eq!(names(&layers), if step == Step::Layered { 2 } else { 1 });
        CRASH_AT.set(None);
        assert_eq!(names(&tmp), 1, "{step:?}");

        let store = LocalStore::open(&dir.path().join("store")).unwrap();
        assert_eq!(names(&tmp), 0, "{step:?}");
        assert_eq!(names(&layers), 1, "{step:?}");
        assert_eq!(store.list().unwrap(), [first.id], "{step:?}");
        assert_eq!(store.verify(first.id).unwrap(), first, "{step:?}");
    }
}

#[test]
fn a_disk_that_fails_to_sync_costs_no_snapshot_that_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), b"content").unwrap();
    let open = || File::open(&tree).unwrap().into();
    let place = dir.path().join("store");
    let store = LocalStore::open(&place).unwrap();
    let first = store.save(open(), SaveMeta::default()).unwrap();
    let mut syncs = 0;
    loop {
        fs::write(tree.join("new"), format!("{syncs}")).unwrap();
        let meta = SaveMeta {
            base: Some(first.id),
            ..SaveMeta::default()
        };
        let (saved, failed) = failing::after(syncs, || store.save(open(), meta));
        assert_eq!(failed, saved.is_err(), "{syncs}");
        // Swept as at the start of a server; what did not get its name for
        // sure is whole, or not there.
        drop(LocalStore::open(&place).unwrap());
        assert_eq!(names(&place.join("tmp")), 0, "{syncs}");
        assert!(store.list().unwrap().contains(&first.id));
        for id in store.list().unwrap() {
            store.verify(id).unwrap();
            if id != first.id {
                store.delete(id).unwrap();
            }
        }
        assert_eq!(names(&place.join("layers")), 1, "{syncs}");
        if !failed {
            break;
        }
        assert!(matches!(saved, Err(SnapshotError::Io { .. })), "{saved:?}");
        syncs += 1;
    }
    // Listing, layer, manifest, and the directories of the three.
    assert_eq!(syncs, 6);
    let into = dir.path().join("into");
    fs::create_dir(&into).unwrap();
    let into = File::open(&into).unwrap().into();
    let (restored, _) = failing::after(0, || store.restore(first.id, into));
    assert!(matches!(restored, Err(SnapshotError::Io { .. })));
}
