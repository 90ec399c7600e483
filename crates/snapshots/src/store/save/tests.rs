//! A save that dies at any step leaves the store as it was.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::fs::{self, File};
use std::path::Path;

use super::Step;
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
