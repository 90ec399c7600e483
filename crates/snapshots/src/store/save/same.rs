//! A tree that did not change shares its list of entries; each kind of change
//! is seen.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};
use tempfile::TempDir;

use crate::store::read::{LISTING, MANIFEST};
use crate::walked::Walked;
use crate::*;

struct Room {
    dir: TempDir,
    tree: PathBuf,
    store: LocalStore,
}

impl Room {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("d/deeper/still")).unwrap();
        fs::create_dir_all(tree.join("node_modules/left out")).unwrap();
        for name in ["file", "d/one", "d/two", "d/deeper/still/there"] {
            fs::write(tree.join(name), name).unwrap();
        }
        symlink("file", tree.join("link")).unwrap();
        rustix::fs::mkfifoat(CWD, tree.join("fifo"), Mode::RUSR).unwrap();
        std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
        fs::hard_link(tree.join("d/one"), tree.join("d/same")).unwrap();
        let store = LocalStore::open(&dir.path().join("store")).unwrap();
        Self { dir, tree, store }
    }

    fn save(&self, base: Option<SnapshotId>) -> Manifest {
        let meta = SaveMeta {
            base,
            ..SaveMeta::default()
        };
        let tree = File::open(&self.tree).unwrap();
        self.store.save(tree.into(), meta).unwrap()
    }

    /// As if the last change was longer ago than any doubt.
    fn believe(&self, id: SnapshotId) {
        let place = self.store.layout.walk(id);
        let mut walked = Walked::read(&place, 10_000).unwrap();
        walked.believe_all();
        walked.write(&place.with_extension("new"), &place).unwrap();
    }

    fn listing(&self, manifest: &Manifest) -> u64 {
        let place = self.store.layout.place(manifest.id).join(LISTING);
        fs::metadata(place).unwrap().ino()
    }

    fn is_same(&self, one: &Manifest, other: &Manifest) -> bool {
        self.listing(one) == self.listing(other)
    }

    #[track_caller]
    fn assert_whole(&self, manifest: &Manifest) {
        let into = tempfile::tempdir_in(self.dir.path()).unwrap();
        let open = |path: &Path| File::open(path).unwrap().into();
        self.store.restore(manifest.id, open(into.path())).unwrap();
        let of = |path| TreeFingerprint::of(open(path), Rules::workspace()).unwrap();
        let diff = of(&self.tree).diff(&of(into.path()));
        assert_eq!(diff, Vec::<String>::new());
    }
}

#[test]
fn an_unchanged_tree_shares_the_list_of_entries() {
    let room = Room::new();
    let first = room.save(None);
    room.believe(first.id);
    let second = room.save(Some(first.id));
    assert!(room.is_same(&first, &second));
    assert_ne!(first.id, second.id);
    assert!(second.created_at >= first.created_at);
    let rest = |manifest: &Manifest| (manifest.layers.clone(), manifest.listing.clone());
    assert_eq!(rest(&first), rest(&second));
    // It stands alone, and the next builds on it as well.
    room.store.delete(first.id).unwrap();
    let third = room.save(Some(second.id));
    assert!(room.is_same(&second, &third));
    room.store.delete(second.id).unwrap();
    room.store.verify(third.id).unwrap();
    room.assert_whole(&third);
}

#[test]
fn one_change_among_thousands_is_seen() {
    let room = Room::new();
    for file in 0..5000 {
        let place = room.tree.join(format!("many {}", file % 3));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(file.to_string()), b"x").unwrap();
    }
    let mut last = room.save(None);
    room.believe(last.id);
    let same = room.save(Some(last.id));
    assert!(room.is_same(&last, &same));
    for file in [0, 1, 1400, 2498, 4999] {
        let place = format!("many {}/{file}", file % 3);
        fs::write(room.tree.join(place), b"y").unwrap();
        let next = room.save(Some(last.id));
        assert!(!room.is_same(&last, &next), "{file}");
        room.believe(next.id);
        last = next;
    }
    room.assert_whole(&last);
}

#[test]
fn what_is_left_out_may_change() {
    let room = Room::new();
    let first = room.save(None);
    room.believe(first.id);
    fs::write(room.tree.join("node_modules/left out/new"), b"new").unwrap();
    assert!(room.is_same(&first, &room.save(Some(first.id))));
}

/// What is done to a tree.
type Change = fn(&Path);

fn times(path: &Path) {
    let time = Timespec {
        tv_sec: 1_000_000_000,
        tv_nsec: 5,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

const CHANGES: [(&str, Change); 18] = [
    ("an edit in place", |tree| {
        let file = File::options().write(true).open(tree.join("d/one"));
        file.unwrap().write_all_at(b"D", 0).unwrap();
        times(&tree.join("d/one"));
    }),
    ("an edit far down", |tree| {
        fs::write(tree.join("d/deeper/still/there"), b"changed").unwrap();
    }),
    ("a file replaced", |tree| {
        fs::write(tree.join("d/new"), "d/two").unwrap();
        fs::rename(tree.join("d/new"), tree.join("d/two")).unwrap();
    }),
    ("a mode", |tree| {
        fs::set_permissions(tree.join("file"), Permissions::from_mode(0o4755)).unwrap();
    }),
    ("a mode of a directory", |tree| {
        fs::set_permissions(tree.join("d/deeper"), Permissions::from_mode(0o1777)).unwrap();
    }),
    ("a mode of the root", |tree| {
        fs::set_permissions(tree, Permissions::from_mode(0o711)).unwrap();
    }),
    ("a time", |tree| times(&tree.join("link"))),
    ("an attribute", |tree| {
        rustix::fs::setxattr(tree.join("file"), "user.new", b"1", XattrFlags::empty()).unwrap();
    }),
    ("a new file", |tree| {
        fs::write(tree.join("d/deeper/new"), b"").unwrap();
    }),
    ("a new directory", |tree| {
        fs::create_dir(tree.join("d/deeper/still/empty")).unwrap();
    }),
    ("a new fifo", |tree| {
        rustix::fs::mkfifoat(CWD, tree.join("d/fifo"), Mode::RUSR).unwrap();
    }),
    ("a removal", |tree| {
        fs::remove_file(tree.join("d/two")).unwrap()
    }),
    ("a removal of the last", |tree| {
        fs::remove_dir_all(tree.join("d/deeper")).unwrap();
    }),
    ("a rename", |tree| {
        fs::rename(tree.join("d/two"), tree.join("d/zwei")).unwrap();
    }),
    ("a directory moved", |tree| {
        fs::rename(tree.join("d/deeper"), tree.join("deeper")).unwrap();
    }),
    ("a link that leads elsewhere", |tree| {
        fs::remove_file(tree.join("link")).unwrap();
        symlink("d/one", tree.join("link")).unwrap();
    }),
    ("a name more", |tree| {
        fs::hard_link(tree.join("file"), tree.join("d/deeper/file")).unwrap();
    }),
    (
        "a directory that takes the place of what was left out",
        |tree| {
            fs::remove_file(tree.join("socket")).unwrap();
            fs::create_dir(tree.join("socket")).unwrap();
        },
    ),
];

#[test]
fn each_kind_of_change_is_seen() {
    for (what, change) in CHANGES {
        let room = Room::new();
        let first = room.save(None);
        room.believe(first.id);
        change(&room.tree);
        let second = room.save(Some(first.id));
        assert!(!room.is_same(&first, &second), "{what}");
        room.assert_whole(&second);
    }
}

#[test]
fn what_only_root_can_change_is_seen() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let changes: [(&str, Change); 2] = [
        ("an owner", |tree| {
            std::os::unix::fs::lchown(tree.join("link"), Some(1000), None).unwrap();
        }),
        ("a whiteout", |tree| {
            let kind = FileType::CharacterDevice;
            rustix::fs::mknodat(CWD, tree.join("d/white"), kind, Mode::RUSR, 0).unwrap();
        }),
    ];
    for (what, change) in changes {
        let room = Room::new();
        let first = room.save(None);
        room.believe(first.id);
        change(&room.tree);
        let second = room.save(Some(first.id));
        assert!(!room.is_same(&first, &second), "{what}");
        room.assert_whole(&second);
    }
}

#[test]
fn other_rules_limits_or_a_boot_of_the_machine_make_it_look_again() {
    let room = Room::new();
    let first = room.save(None);
    room.believe(first.id);
    let meta = SaveMeta {
        base: Some(first.id),
        rules: Rules::everything(),
        ..SaveMeta::default()
    };
    let tree = || File::open(&room.tree).unwrap().into();
    let all = room.store.save(tree(), meta).unwrap();
    assert!(all.entries > first.entries);

    let limits = Limits {
        entries: 3,
        ..Limits::default()
    };
    let settings = Settings {
        limits,
        ..Settings::default()
    };
    let small = LocalStore::open_with(&room.dir.path().join("store"), settings).unwrap();
    let meta = SaveMeta {
        base: Some(first.id),
        ..SaveMeta::default()
    };
    let refused = small.save(tree(), meta);
    assert!(matches!(refused, Err(SnapshotError::LimitExceeded { .. })));

    // The eighth byte on is the boot's.
    let place = room.store.layout.walk(first.id);
    let mut bytes = fs::read(&place).unwrap();
    bytes[8] ^= 1;
    let length = bytes.len() - 32;
    let digest = blake3::hash(&bytes[..length]);
    bytes[length..].copy_from_slice(digest.as_bytes());
    fs::write(&place, bytes).unwrap();
    assert!(Walked::read(&place, 1000).is_none());
    assert!(!room.is_same(&first, &room.save(Some(first.id))));
}

#[test]
fn a_damaged_list_of_entries_is_not_shared() {
    let room = Room::new();
    let first = room.save(None);
    room.believe(first.id);
    let place = room.store.layout.place(first.id).join(LISTING);
    let mut bytes = fs::read(&place).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&place, bytes).unwrap();
    let second = room.save(Some(first.id));
    assert!(!room.is_same(&first, &second));
    room.assert_whole(&second);
    // Nor one whose manifest is gone.
    room.believe(second.id);
    fs::remove_file(room.store.layout.place(second.id).join(MANIFEST)).unwrap();
    room.assert_whole(&room.save(Some(second.id)));
}
