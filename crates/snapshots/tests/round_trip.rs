//! A restored tree is the saved tree.
#![allow(clippy::unwrap_used, clippy::panic)]

mod trees;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use hutch_snapshots::{Kind, Rules, SaveMeta, TreeFingerprint};
use trees::{Fixture, assert_same, everything, fingerprint, is_root, open};

#[test]
fn every_kind_of_entry_comes_back_exactly() {
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    everything(&tree);
    let restored = fixture.cycle(&tree, "restored");
    assert_same(&tree, &restored);
    // The comparison has not compared nothing.
    assert!(fingerprint(&tree).lines.len() > 60);
    for left_out in ["node_modules", "a/node_modules", "socket", "null", "disk"] {
        assert!(
            restored.join(left_out).symlink_metadata().is_err(),
            "{left_out}"
        );
    }
    for kept in ["a/b/node_modules", "a/b/c/node_modules"] {
        assert!(restored.join(kept).symlink_metadata().is_ok(), "{kept}");
    }
    assert_eq!(
        restored.join("whiteout").symlink_metadata().is_ok(),
        is_root()
    );
}

#[test]
fn names_and_targets_may_have_every_byte() {
    let fixture = Fixture::in_memory();
    let tree = fixture.empty("tree");
    for byte in (1..=u8::MAX).filter(|byte| *byte != b'/') {
        let name = |bytes: &[u8]| tree.join(OsStr::from_bytes(bytes));
        // Alone it may be the dot, which is the directory itself.
        fs::create_dir(name(&[byte, byte, byte])).unwrap();
        fs::write(name(&[byte, byte, byte]).join("inside"), [byte]).unwrap();
        fs::write(name(&[b'a', byte, b'z']), [byte]).unwrap();
        fs::write(name(&[b'a', byte]), [byte]).unwrap();
        let target = OsStr::from_bytes(&[byte]).to_owned();
        std::os::unix::fs::symlink(target, name(&[b'l', byte])).unwrap();
        fs::hard_link(name(&[b'a', byte]), name(&[b'h', byte])).unwrap();
    }
    let restored = fixture.cycle(&tree, "restored");
    assert_same(&tree, &restored);
    assert_eq!(fingerprint(&tree).lines.len(), 1 + 6 * 254);
}

#[test]
fn what_is_left_out_is_counted() {
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    everything(&tree);
    let manifest = fixture.save(&tree);
    assert_eq!(manifest.skipped.node_modules, 2);
    assert_eq!(manifest.skipped.sockets, 1);
    assert_eq!(manifest.skipped.devices, if is_root() { 2 } else { 0 });
    assert_eq!(manifest.skipped.vanished, 0);
    assert_eq!(manifest.excluded, ["sockets", "devices", "node_modules"]);
}

#[test]
fn twenty_cycles_change_nothing() {
    let fixture = Fixture::in_memory();
    let tree = fixture.empty("tree");
    everything(&tree);
    let before = fingerprint(&tree);
    let mut current = tree;
    for cycle in 0..20 {
        current = fixture.cycle(&current, &format!("cycle {cycle}"));
        assert_eq!(before.diff(&fingerprint(&current)), Vec::<String>::new());
    }
}

#[test]
fn everything_can_be_kept() {
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    everything(&tree);
    let rules = Rules::everything();
    let meta = SaveMeta {
        rules,
        ..SaveMeta::default()
    };
    let manifest = fixture.store.save(open(&tree), meta).unwrap();
    let into = fixture.empty("restored");
    fixture.store.restore(manifest.id, open(&into)).unwrap();
    assert!(into.join("a/node_modules/x").exists());
    assert_eq!(
        TreeFingerprint::of(open(&tree), rules).unwrap(),
        TreeFingerprint::of(open(&into), rules).unwrap()
    );
}

#[test]
fn holes_stay_holes_and_zeros_stay_zeros() {
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    everything(&tree);
    let restored = fixture.cycle(&tree, "restored");
    for name in [
        "all hole",
        "huge hole",
        "hole first",
        "hole last",
        "holes",
        "zeros",
    ] {
        let blocks = |root: &std::path::Path| root.join(name).metadata().unwrap().blocks();
        assert_eq!(blocks(&tree), blocks(&restored), "{name}");
    }
}

#[test]
fn an_empty_tree_is_a_tree() {
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    let manifest = fixture.save(&tree);
    assert_eq!((manifest.entries, manifest.bytes), (0, 0));
    let restored = fixture.cycle(&tree, "restored");
    assert_same(&tree, &restored);
}

#[test]
fn saving_leaves_access_times_alone() {
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    fs::write(tree.join("file"), b"x").unwrap();
    let times = || {
        let of =
            |path| fs::metadata(path).map(|meta: fs::Metadata| (meta.atime(), meta.atime_nsec()));
        (of(tree.clone()).unwrap(), of(tree.join("file")).unwrap())
    };
    trees::set_time(&tree.join("file"), 1000, 0);
    trees::set_time(&tree, 1000, 0);
    let before = times();
    fixture.save(&tree);
    assert_eq!(times(), before);
}

#[test]
fn a_tree_ten_thousand_deep_comes_back() {
    let fixture = Fixture::in_memory();
    let tree = fixture.empty("tree");
    let mut at = open(&tree);
    for level in 0..10_000 {
        // Something to come back to on each level, after the way down.
        if level % 100 == 0 {
            let mode = rustix::fs::Mode::RWXU;
            rustix::fs::mkdirat(&at, "e", mode).unwrap();
        }
        rustix::fs::mkdirat(&at, "d", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        at = rustix::fs::openat(&at, "d", flags, rustix::fs::Mode::empty()).unwrap();
    }
    let bottom: File = File::from(
        rustix::fs::openat(
            &at,
            "bottom",
            rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY,
            rustix::fs::Mode::RUSR,
        )
        .unwrap(),
    );
    drop(bottom);
    rustix::fs::linkat(
        &at,
        "bottom",
        open(&tree),
        "top",
        rustix::fs::AtFlags::empty(),
    )
    .unwrap();
    let saved = fixture.save(&tree);
    let restored = fixture.empty("restored");
    fixture.store.restore(saved.id, open(&restored)).unwrap();
    // Equal trees have equal listings, and half a gigabyte of paths is read fewer times.
    let again = fixture.save(&restored);
    assert_eq!(again.listing, saved.listing);
    assert_eq!(saved.entries, 10_000 + 100 + 2);
    // The standard library removes such a tree only in pieces.
    for root in [tree, restored] {
        let status = std::process::Command::new("rm")
            .arg("-rf")
            .arg(root)
            .status();
        assert!(status.unwrap().success());
    }
}

#[test]
fn the_listing_says_what_is_in_it() {
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    fs::write(tree.join("file"), b"content").unwrap();
    let manifest = fixture.save(&tree);
    let mut entries = Vec::new();
    fixture
        .store
        .entries(manifest.id, |entry| {
            entries.push(entry);
            Ok(())
        })
        .unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0], manifest.root);
    assert_eq!(entries[1].path.as_bytes(), b"file");
    let Kind::File {
        size,
        stored,
        digest,
        ..
    } = &entries[1].kind
    else {
        panic!("{:?}", entries[1]);
    };
    assert_eq!((*size, *stored), (7, 7));
    assert_eq!(*digest, blake3::hash(b"content").to_hex().to_string());
}

#[test]
fn work_is_kept_over_cycles() {
    // Each cycle goes on from the last one's tree.
    let fixture = Fixture::in_memory();
    let mut tree = fixture.empty("tree");
    for cycle in 1..=5 {
        let log = fs::read_to_string(tree.join("f")).unwrap_or_default();
        fs::write(tree.join("f"), format!("{log}line {cycle}\n")).unwrap();
        fs::write(tree.join(format!("file {cycle}")), format!("{cycle}")).unwrap();
        fs::write(tree.join("file 1"), format!("edited {cycle}")).unwrap();
        tree = fixture.cycle(&tree, &format!("cycle {cycle}"));
        assert_eq!(
            fs::read_to_string(tree.join("f")).unwrap().lines().count(),
            cycle
        );
        for file in 2..=cycle {
            let content = fs::read_to_string(tree.join(format!("file {file}"))).unwrap();
            assert_eq!(content, file.to_string());
        }
        let first = fs::read_to_string(tree.join("file 1")).unwrap();
        assert_eq!(first, format!("edited {cycle}"));
    }
}
