//! A tree of 200,000 files, 40 levels deep, with device nodes and set-user-id
//! files among them: time and memory stay within bounds.
#![allow(clippy::unwrap_used)]

mod trees;

use std::fs;
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use trees::{Fixture, assert_same, open, set_mode};

const FILES: usize = 200_000;
const LEVELS: usize = 40;

/// The most memory that this process has had, in MiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kib = line.trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() >> 10
}

#[test]
#[ignore = "run by make soak, as it takes a minute"]
fn two_hundred_thousand_files_take_bounded_time_and_memory() {
    let fixture = Fixture::in_memory();
    let tree = fixture.empty("tree");
    let mut deep = tree.clone();
    for level in 0..LEVELS {
        deep.push(format!("level {level}"));
    }
    for directory in 0..200 {
        let place = deep.join(format!("{directory}"));
        fs::create_dir_all(&place).unwrap();
        for file in 0..FILES / 200 {
            fs::write(place.join(format!("{file}")), format!("{directory} {file}")).unwrap();
        }
        set_mode(&place.join("0"), 0o6755);
        if trees::is_root() {
            trees::device(&place.join("null"), FileType::CharacterDevice, 1, 3);
        }
    }
    let before = peak();
    let begun = Instant::now();
    let first = fixture.save(&tree);
    assert_eq!(first.entries, (FILES + 200 + LEVELS) as u64);
    let into = fixture.empty("into");
    fixture.store.restore(first.id, open(&into)).unwrap();
    fs::write(tree.join("new"), b"new").unwrap();
    let second = fixture.save_on(&tree, &first);
    assert!(second.layers[1].unpacked_length() <= 4096);
    let (took, grown) = (begun.elapsed(), peak() - before);
    // A save that builds on another knows all files of that by heart.
    assert!(grown < 400, "{grown} MiB");
    assert!(took < Duration::from_secs(300), "{took:?}");
    if trees::is_root() {
        assert_eq!(first.skipped.devices, 200);
    }
    fs::remove_file(tree.join("new")).unwrap();
    trees::set_time(&tree, 1, 0);
    trees::set_time(&into, 1, 0);
    assert_same(&tree, &into);
}
