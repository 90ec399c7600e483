#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::super::confined::make_dir;
use super::{Blanks, DIR, FEWEST, MOST};

fn root(dir: &Path) -> OwnedFd {
    fs::File::open(dir).unwrap().into()
}

/// A blank of one directory, so that a half one can be told.
fn fill(home: &OwnedFd) -> rustix::io::Result<()> {
    make_dir(home, "content", 0o700).map(drop)
}

fn whole(dir: &Path) -> usize {
    let entries = fs::read_dir(dir.join(DIR)).unwrap();
    entries
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            !name.to_str().unwrap().starts_with("half-")
        })
        .count()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_taken_blank_is_whole_and_is_made_up_for() {
    let dir = tempfile::tempdir().unwrap();
    let (root, side) = (root(dir.path()), dir.path().join("side"));
    fs::create_dir(&side).unwrap();
    let side_fd = OwnedFd::from(fs::File::open(&side).unwrap());
    let blanks = Blanks::keep(&root, fill).unwrap();
    until("the first blanks", || whole(dir.path()) == FEWEST);

    let home = blanks.take(&root, &side_fd, "mine").unwrap();
    assert!(home.is_some());
    assert!(side.join("mine/content").is_dir());
    until("another one", || whole(dir.path()) == FEWEST);
}

#[test]
fn as_many_are_kept_as_were_missed_and_not_without_end() {
    let dir = tempfile::tempdir().unwrap();
    let root = root(dir.path());
    let side = make_dir(&root, "side", 0o700).unwrap();
    let blanks = Blanks::keep(&root, fill).unwrap();
    for number in 0..4 * MOST {
        blanks.take(&root, &side, &format!("v{number}")).unwrap();
    }
    until("the most", || whole(dir.path()) == MOST);
    drop(blanks);
    assert_eq!(whole(dir.path()), MOST);
}

#[test]
fn what_is_there_is_used_and_what_is_half_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let root = root(dir.path());
    let side = make_dir(&root, "side", 0o700).unwrap();
    let at = dir.path().join(DIR);
    fs::create_dir_all(at.join("earlier/content")).unwrap();
    fs::create_dir_all(at.join("half-earlier/some")).unwrap();
    let never = |_: &OwnedFd| Err(Errno::NOSPC);
    let blanks = Blanks::keep(&root, never).unwrap();
    assert!(blanks.take(&root, &side, "a").unwrap().is_some());
    assert!(dir.path().join("side/a/content").is_dir());
    assert!(blanks.take(&root, &side, "b").unwrap().is_none());
    until("the half one is gone", || !at.join("half-earlier").exists());
}

#[test]
fn a_cleared_directory_costs_nothing_but_time() {
    let dir = tempfile::tempdir().unwrap();
    let root = root(dir.path());
    let side = make_dir(&root, "side", 0o700).unwrap();
    let at = dir.path().join(DIR);
    let blanks = Blanks::keep(&root, fill).unwrap();
    until("the first blanks", || whole(dir.path()) == FEWEST);
    fs::remove_dir_all(&at).unwrap();
    assert!(blanks.take(&root, &side, "a").unwrap().is_none());
    until("new ones", || at.exists() && whole(dir.path()) >= FEWEST);
    assert!(blanks.take(&root, &side, "b").unwrap().is_some());
    // The blanks alone.
    fs::remove_dir_all(&at).unwrap();
    fs::create_dir(&at).unwrap();
    assert!(blanks.take(&root, &side, "c").unwrap().is_none());
    until("new ones again", || whole(dir.path()) >= FEWEST);
}

#[test]
fn a_full_disk_is_not_asked_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let root = root(dir.path());
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let blanks = Blanks::keep(&root, move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Err(Errno::NOSPC)
    })
    .unwrap();
    until("the first try", || tries.load(Ordering::SeqCst) == 1);
    // Closing waits for the maker, which would have gone on otherwise.
    drop(blanks);
    assert_eq!(tries.load(Ordering::SeqCst), 1);
    assert_eq!(fs::read_dir(dir.path().join(DIR)).unwrap().count(), 0);
}
