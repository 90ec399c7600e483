//! Trees that fight back while they are saved, and restores that are killed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod trees;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hutch_snapshots::{LocalStore, SaveMeta, SnapshotError};
use trees::{Fixture, assert_same, open};

const FILES: usize = 2000;

#[test]
fn a_restore_that_is_killed_costs_nothing() {
    let fixture = Fixture::in_memory();
    let tree = fixture.empty("tree");
    for file in 0..FILES {
        let place = tree.join(format!("{}", file % 20));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(format!("{file}")), vec![b'x'; 2000]).unwrap();
    }
    let manifest = fixture.save(&tree);
    for percent in [10, 50, 90] {
        let into = fixture.empty(&format!("killed at {percent}"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "restore_until_killed", "--ignored"])
            .env("ROOM", fixture.dir.path())
            .env("INTO", &into)
            .env("ID", manifest.id.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while files(&into) * 100 < FILES * percent && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "{percent} % were not reached");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(files(&into) * 100 >= FILES * percent);

        // What is half there is not taken for a tree, and not built upon.
        let again = fixture.store.restore(manifest.id, open(&into));
        assert!(matches!(again, Err(SnapshotError::NotEmpty)), "{again:?}");
        let anew = fixture.empty(&format!("anew after {percent}"));
        let store = LocalStore::open(&fixture.dir.path().join("store")).unwrap();
        assert_eq!(store.restore(manifest.id, open(&anew)).unwrap(), manifest);
        assert_same(&tree, &anew);
    }
}

#[test]
#[ignore = "run by a_restore_that_is_killed_costs_nothing"]
fn restore_until_killed() {
    let room = std::env::var("ROOM").unwrap();
    let store = LocalStore::open(&Path::new(&room).join("store")).unwrap();
    let into = open(Path::new(&std::env::var("INTO").unwrap()));
    let id = std::env::var("ID").unwrap().parse().unwrap();
    let _ = store.restore(id, into);
}

fn files(below: &Path) -> usize {
    let within = |place: fs::DirEntry| fs::read_dir(place.path()).map_or(0, Iterator::count);
    fs::read_dir(below).unwrap().flatten().map(within).sum()
}

#[test]
fn a_directory_that_turns_into_a_link_leads_nowhere() {
    let fixture = Fixture::in_memory();
    let outside = fixture.empty("outside");
    fs::create_dir(outside.join("deeper")).unwrap();
    for place in ["secret", "deeper/secret"] {
        fs::write(outside.join(place), b"secret").unwrap();
    }
    let tree = fixture.empty("tree");
    fs::create_dir_all(tree.join("turn/deeper")).unwrap();
    fs::write(tree.join("turn/deeper/own"), b"own").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                fs::rename(tree.join("turn"), tree.join("away")).unwrap();
                symlink(&outside, tree.join("turn")).unwrap();
                std::thread::yield_now();
                fs::remove_file(tree.join("turn")).unwrap();
                fs::rename(tree.join("away"), tree.join("turn")).unwrap();
            }
        });
        let saved: Vec<_> = (0..50)
            .map(|_| fixture.store.save(open(&tree), SaveMeta::default()))
            .collect();
        stop.store(true, Ordering::Relaxed);
        for manifest in saved {
            let id = manifest.unwrap().id;
            let looked = fixture.store.entries(id, |entry| {
                assert!(!entry.path.as_bytes().ends_with(b"secret"), "{entry:?}");
                Ok(())
            });
            looked.unwrap();
            fixture.store.verify(id).unwrap();
        }
    });
}

#[test]
fn what_is_mounted_in_a_tree_is_refused() {
    if !trees::is_root() {
        return;
    }
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    fs::create_dir_all(tree.join("a/mounted")).unwrap();
    let script = "mount -t tmpfs tmpfs \"$ROOM/tree/a/mounted\" \
        && exec \"$0\" --exact save_with_a_mount --ignored";
    let status = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .env("ROOM", fixture.dir.path())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    // It ended with its namespace, and the tree is a tree again.
    fixture.save(&tree);
}

#[test]
#[ignore = "run by what_is_mounted_in_a_tree_is_refused"]
fn save_with_a_mount() {
    let room = std::env::var("ROOM").unwrap();
    let room = Path::new(&room);
    let store = LocalStore::open(&room.join("store")).unwrap();
    match store.save(open(&room.join("tree")), SaveMeta::default()) {
        Err(SnapshotError::ForeignMount { path }) => assert_eq!(path, "a/mounted"),
        other => panic!("{other:?}"),
    }
}
