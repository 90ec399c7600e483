//! Snapshots that are cut, damaged, too new or too old are refused, typed, with
//! nothing unpacked.
#![allow(clippy::unwrap_used, clippy::panic)]

mod trees;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hutch_snapshots::{
    Cancel, LimitKind, Limits, LocalStore, Manifest, Part, Rules, SaveMeta, Settings,
    SnapshotError, SnapshotId, TreeFingerprint,
};
use trees::{Fixture, assert_same, open};

const PARTS: [Part; 3] = [Part::Archive, Part::Listing, Part::Manifest];

fn part(fixture: &Fixture, manifest: &Manifest, part: Part) -> PathBuf {
    match part {
        Part::Archive => fixture.layer(manifest),
        Part::Listing => fixture.place(manifest).join("entries.jsonl.zst"),
        Part::Manifest => fixture.place(manifest).join("manifest.json"),
    }
}

fn saved() -> (Fixture, Manifest) {
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    fs::write(tree.join("file"), vec![b'x'; 100_000]).unwrap();
    for file in 0..50 {
        fs::write(tree.join(format!("small {file}")), format!("{file}")).unwrap();
    }
    let manifest = fixture.save(&tree);
    (fixture, manifest)
}

/// Restores; whatever comes of it, an error leaves the directory empty.
fn restore(fixture: &Fixture, id: SnapshotId) -> Result<Manifest, SnapshotError> {
    let into = tempfile::tempdir_in(fixture.dir.path()).unwrap();
    let restored = fixture.store.restore(id, open(into.path()));
    if restored.is_err() {
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0);
    }
    restored
}

#[track_caller]
fn assert_corrupt(result: Result<Manifest, SnapshotError>, part: Part) {
    match result {
        Err(SnapshotError::Corrupt { which, .. }) => assert_eq!(which, part),
        other => panic!("{other:?} is not a corrupt {part}"),
    }
}

#[test]
fn damage_is_found_in_each_part() {
    let (fixture, manifest) = saved();
    for part in PARTS {
        let path = self::part(&fixture, &manifest, part);
        let whole = fs::read(&path).unwrap();
        let last = whole.len() - 1;
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x80;
            bytes
        };
        let longer = [&whole[..], b"x"].concat();
        let damaged = [
            whole[..last].to_vec(),
            flipped(whole.len() / 2),
            flipped(0),
            flipped(last),
            Vec::new(),
            longer,
        ];
        for bytes in damaged {
            fs::write(&path, &bytes).unwrap();
            assert_corrupt(restore(&fixture, manifest.id), part);
            assert_corrupt(fixture.store.verify(manifest.id), part);
        }
        fs::remove_file(&path).unwrap();
        assert_corrupt(restore(&fixture, manifest.id), part);
        fs::write(&path, &whole).unwrap();
        restore(&fixture, manifest.id).unwrap();
    }
}

#[test]
fn a_damaged_snapshot_can_be_deleted_and_others_are_whole() {
    let (fixture, manifest) = saved();
    let tree = fixture.dir.path().join("tree");
    let other = fixture.save(&tree);
    fs::write(fixture.place(&manifest).join("manifest.json"), b"").unwrap();
    assert!(fixture.store.list().unwrap().contains(&manifest.id));
    fixture.store.delete(manifest.id).unwrap();
    assert_eq!(fixture.store.list().unwrap(), [other.id]);
    restore(&fixture, other.id).unwrap();
}

#[test]
fn parts_of_two_snapshots_do_not_mix() {
    let (fixture, one) = saved();
    let tree = fixture.dir.path().join("tree");
    fs::write(tree.join("file"), vec![b'y'; 100_000]).unwrap();
    let other = fixture.save(&tree);
    for part in PARTS {
        let path = self::part(&fixture, &one, part);
        let whole = fs::read(&path).unwrap();
        fs::copy(self::part(&fixture, &other, part), &path).unwrap();
        assert_corrupt(restore(&fixture, one.id), part);
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn newer_versions_are_told_apart_from_damage() {
    let (fixture, manifest) = saved();
    let path = fixture.place(&manifest).join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"version\": 2", "\"version\": 3")).unwrap();
    let found = restore(&fixture, manifest.id);
    assert!(matches!(
        found,
        Err(SnapshotError::UnsupportedVersion {
            found: 3,
            known: 2,
            ..
        })
    ));

    let store = fixture.dir.path().join("store");
    fs::write(
        store.join("store.json"),
        b"{\"version\": 7, \"more\": true}",
    )
    .unwrap();
    let opened = LocalStore::open(&store);
    assert!(matches!(
        opened,
        Err(SnapshotError::UnsupportedVersion { found: 7, .. })
    ));
    fs::remove_file(store.join("store.json")).unwrap();
    assert!(matches!(
        LocalStore::open(&store),
        Err(SnapshotError::Io { .. })
    ));
}

#[test]
fn an_expired_snapshot_is_described_but_not_restored() {
    let fixture = Fixture::with(Settings {
        ttl: Some(Duration::ZERO),
        ..Settings::default()
    });
    let tree = fixture.empty("tree");
    let manifest = fixture.save(&tree);
    assert_eq!(fixture.store.describe(manifest.id).unwrap(), manifest);
    let expired = restore(&fixture, manifest.id);
    let Err(SnapshotError::Expired { at, .. }) = expired else {
        panic!("{expired:?}");
    };
    assert_eq!(Some(at), manifest.expires_at);
}

#[test]
fn snapshots_are_kept_for_ninety_days_or_for_ever() {
    let (fixture, manifest) = saved();
    let kept = manifest.expires_at.unwrap() - manifest.created_at;
    assert_eq!(kept.whole_days(), 90);
    let settings = Settings {
        ttl: None,
        ..Settings::default()
    };
    let store = LocalStore::open_with(&fixture.dir.path().join("store"), settings).unwrap();
    let tree = open(&fixture.dir.path().join("tree"));
    let manifest = store.save(tree, SaveMeta::default()).unwrap();
    assert_eq!(manifest.expires_at, None);
    restore(&fixture, manifest.id).unwrap();
}

#[test]
fn unknown_snapshots_are_not_found() {
    let (fixture, manifest) = saved();
    fixture.store.delete(manifest.id).unwrap();
    for id in [manifest.id, SnapshotId::random()] {
        assert!(matches!(
            restore(&fixture, id),
            Err(SnapshotError::NotFound { .. })
        ));
        assert!(matches!(
            fixture.store.describe(id),
            Err(SnapshotError::NotFound { .. })
        ));
        assert!(matches!(
            fixture.store.delete(id),
            Err(SnapshotError::NotFound { .. })
        ));
    }
    assert_eq!(
        fs::read_dir(fixture.dir.path().join("store/tmp"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn ids_have_one_spelling() {
    let id = SnapshotId::random();
    assert_eq!(id.to_string().parse(), Ok(id));
    for text in [
        String::new(),
        "../../etc".to_owned(),
        id.to_string().to_uppercase().replace('-', "") + "A",
        id.to_string().replace('-', ""),
        format!("{{{id}}}"),
    ] {
        assert!(text.parse::<SnapshotId>().is_err(), "{text}");
    }
}

#[test]
fn a_directory_that_holds_something_is_left_alone() {
    let (fixture, manifest) = saved();
    let into = fixture.empty("into");
    fs::write(into.join("mine"), b"mine").unwrap();
    let restored = fixture.store.restore(manifest.id, open(&into));
    assert!(matches!(restored, Err(SnapshotError::NotEmpty)));
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1);
}

#[test]
fn limits_hold_for_saving() {
    let small = |limits| {
        let fixture = Fixture::with(Settings {
            limits,
            ..Settings::default()
        });
        let tree = fixture.empty("tree");
        fs::create_dir(tree.join("directory")).unwrap();
        fs::write(tree.join("directory/file"), vec![0; 100_000]).unwrap();
        trees::set_xattr(&tree.join("directory"), "user.x", &[7; 100]);
        let saved = fixture.store.save(open(&tree), SaveMeta::default());
        assert_eq!(fixture.store.list().unwrap(), []);
        assert_eq!(
            fs::read_dir(fixture.dir.path().join("store/tmp"))
                .unwrap()
                .count(),
            0
        );
        match saved {
            Err(SnapshotError::LimitExceeded { which, .. }) => which,
            other => panic!("{other:?}"),
        }
    };
    let all = Limits::default();
    let entries = Limits { entries: 1, ..all };
    let path = Limits {
        path_bytes: 12,
        ..all
    };
    let xattrs = Limits {
        entry_bytes: 99,
        ..all
    };
    let bytes = Limits {
        unpacked_bytes: 100_000,
        ..all
    };
    assert_eq!(small(entries), LimitKind::Entries);
    assert_eq!(small(path), LimitKind::PathBytes);
    assert_eq!(small(xattrs), LimitKind::EntryBytes);
    assert_eq!(small(bytes), LimitKind::UnpackedBytes);
}

#[test]
fn a_cancelled_call_leaves_nothing() {
    let (fixture, manifest) = saved();
    let cancel = Cancel::new();
    cancel.cancel();
    let meta = SaveMeta {
        cancel: cancel.clone(),
        ..SaveMeta::default()
    };
    let tree = open(&fixture.dir.path().join("tree"));
    assert!(matches!(
        fixture.store.save(tree, meta),
        Err(SnapshotError::Cancelled)
    ));
    assert_eq!(fixture.store.list().unwrap(), [manifest.id]);
    let into = fixture.empty("into");
    let restored = fixture
        .store
        .restore_with(manifest.id, open(&into), &cancel);
    assert!(matches!(restored, Err(SnapshotError::Cancelled)));
    assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
}

#[test]
fn a_full_disk_is_told_apart() {
    // A disk of its own, in a mount namespace of its own: only root can.
    if !trees::is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script =
        "mount -t tmpfs -o size=2m tmpfs \"$DISK\" && exec \"$0\" --exact full_disk --ignored";
    let status = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .env("DISK", dir.path())
        .status();
    assert!(status.unwrap().success());
}

#[test]
#[ignore = "run by a_full_disk_is_told_apart"]
fn full_disk() {
    let disk = std::env::var("DISK").unwrap();
    let disk = Path::new(&disk);
    let outside = Fixture::new();
    let tree = outside.empty("tree");
    // Does not compress: a generator's bytes.
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
    .take(4 << 20)
    .collect();
    fs::write(tree.join("noise"), &noise).unwrap();
    let store = LocalStore::open(&disk.join("store")).unwrap();
    let small = outside.empty("small");
    fs::write(small.join("file"), b"content").unwrap();
    let first = store.save(open(&small), SaveMeta::default()).unwrap();
    fs::write(small.join("noise"), &noise).unwrap();
    let meta = SaveMeta {
        base: Some(first.id),
        ..SaveMeta::default()
    };
    let saved = store.save(open(&small), meta);
    assert!(
        matches!(saved, Err(SnapshotError::NoSpace { .. })),
        "{saved:?}"
    );
    assert_eq!(store.list().unwrap(), [first.id]);
    assert_eq!(fs::read_dir(disk.join("store/layers")).unwrap().count(), 1);
    store.verify(first.id).unwrap();
    store.delete(first.id).unwrap();
    let saved = store.save(open(&tree), SaveMeta::default());
    assert!(
        matches!(saved, Err(SnapshotError::NoSpace { .. })),
        "{saved:?}"
    );
    assert_eq!(store.list().unwrap(), []);
    assert_eq!(fs::read_dir(disk.join("store/tmp")).unwrap().count(), 0);

    let manifest = outside.save(&tree);
    let into = disk.join("into");
    fs::create_dir(&into).unwrap();
    let restored = outside.store.restore(manifest.id, open(&into));
    assert!(
        matches!(restored, Err(SnapshotError::NoSpace { .. })),
        "{restored:?}"
    );
    // The snapshot is as good as before.
    let into = outside.empty("into");
    outside.store.restore(manifest.id, open(&into)).unwrap();
    assert_same(&tree, &into);
    let _ = TreeFingerprint::of(open(&into), Rules::everything()).unwrap();
}
