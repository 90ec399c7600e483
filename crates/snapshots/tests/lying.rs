//! A disk that takes every write and tells at the sync that it lost them.
#![allow(clippy::unwrap_used)]

mod trees;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hutch_snapshots::{LocalStore, SaveMeta, SnapshotError};
use trees::{Fixture, assert_same, open};

/// A file system of 256 MiB, on a device that has room for 24.
const DISK: &str = "mount -t tmpfs -o size=24m tmpfs \"$ROOM\" \
    && truncate -s 256M \"$ROOM/image\" \
    && mkfs.ext4 -q -O ^has_journal -E lazy_itable_init=1,nodiscard \"$ROOM/image\" \
    && mkdir \"$ROOM/disk\" && mount -o loop \"$ROOM/image\" \"$ROOM/disk\" \
    && exec \"$0\" --exact save_to_a_lying_disk --ignored";

#[test]
fn a_disk_that_lies_until_the_sync_costs_no_snapshot_that_was_there() {
    if !trees::is_root() {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let status = Command::new("unshare")
        .args(["--mount", "sh", "-c", DISK])
        .arg(std::env::current_exe().unwrap())
        .env("ROOM", room.path())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

#[test]
#[ignore = "run by a_disk_that_lies_until_the_sync_costs_no_snapshot_that_was_there"]
fn save_to_a_lying_disk() {
    let room = std::env::var("ROOM").unwrap();
    let disk = Path::new(&room).join("disk");
    let outside = Fixture::in_memory();
    let tree = outside.empty("tree");
    fs::write(tree.join("file"), b"content").unwrap();
    let store = LocalStore::open(&disk.join("store")).unwrap();
    let first = store.save(open(&tree), SaveMeta::default()).unwrap();

    // Does not compress: a generator's bytes.
    let mut state = 1_u64;
    let mut noise = Vec::new();
    while noise.len() < 48 << 20 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        noise.extend_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    fs::write(tree.join("noise"), &noise).unwrap();
    let on_first = || SaveMeta {
        base: Some(first.id),
        ..SaveMeta::default()
    };
    // A sync that failed once may succeed the next time, though nothing is there.
    for _ in 0..3 {
        let saved = store.save(open(&tree), on_first());
        assert!(
            matches!(
                saved,
                Err(SnapshotError::Io { .. } | SnapshotError::NoSpace { .. })
            ),
            "{saved:?}"
        );
        assert_eq!(store.list().unwrap(), [first.id]);
        assert_eq!(fs::read_dir(disk.join("store/layers")).unwrap().count(), 1);
        assert_eq!(store.verify(first.id).unwrap(), first);
    }

    // With room for what it promised, it is a disk like others.
    let grown = Command::new("mount")
        .args(["-o", "remount,size=300m", &room])
        .status();
    assert!(grown.unwrap().success());
    let second = store.save(open(&tree), on_first()).unwrap();
    let into = outside.empty("into");
    store.restore(second.id, open(&into)).unwrap();
    assert_same(&tree, &into);
}
