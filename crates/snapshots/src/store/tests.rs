//! Archives of version 1 that no save would write are refused, typed, and reach
//! nothing outside the directory.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::{self, File};
use std::path::Path;

use tempfile::TempDir;

use super::read::{ARCHIVE, ARCHIVE_FORMAT, LISTING, MANIFEST};
use crate::archive::listing::ListingWriter;
use crate::*;
use hutch_pax::{Body, Member, Reader, Segment, Writer};

const TIME: Mtime = Mtime {
    seconds: 1,
    nanos: 0,
};

fn member(path: &str, body: Body) -> Member {
    let attributes = Attributes {
        mode: 0o700,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        mtime: TIME,
    };
    Member {
        path: path.into(),
        attributes,
        xattrs: Vec::new(),
        body,
    }
}

fn root() -> Member {
    member("", Body::Directory)
}

fn directory(path: &str) -> Member {
    member(path, Body::Directory)
}

fn file(path: &str) -> Member {
    member(path, Body::File { size: 0 })
}

fn symlink(path: &str, target: &str) -> Member {
    member(path, Body::Symlink(target.into()))
}

fn link(path: &str, target: &str) -> Member {
    member(path, Body::HardLink(target.into()))
}

/// An archive of members, with data of zeros.
fn tar(members: &[Member]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for member in members {
        writer.member(member).unwrap();
        let stored = usize::try_from(member.body.stored()).unwrap();
        writer.data(&vec![0; stored]).unwrap();
    }
    writer.finish().unwrap()
}

/// Puts an archive into the store with a manifest and listing that agree to it
/// as far as it can be read.
fn forge(store: &LocalStore, tar: &[u8], unpacked_length: u64) -> SnapshotId {
    let id = SnapshotId::random();
    let place = store.layout.place(id);
    fs::create_dir(&place).unwrap();
    let archive = zstd::encode_all(tar, 1).unwrap();
    fs::write(place.join(ARCHIVE), &archive).unwrap();

    let listing = File::create(place.join(LISTING)).unwrap();
    let mut listing = ListingWriter::new(listing, 1).unwrap();
    let mut reader = Reader::new(tar, hutch_pax::Limits::default());
    let (mut first, mut entries) = (None, 0);
    while let Ok(Some(member)) = reader.member() {
        let mut data = vec![0; usize::try_from(reader.left()).unwrap_or(0).min(1 << 27)];
        let mut at = 0;
        while let Ok(got @ 1..) = reader.data(&mut data[at..]) {
            at += got;
        }
        let Some(entry) = Entry::of(member, blake3::hash(&data)) else {
            continue;
        };
        listing.push(&entry).unwrap();
        entries += u64::from(first.is_some());
        first.get_or_insert(entry);
    }
    let root = first.or_else(|| Entry::of(root(), blake3::hash(b"")));
    let manifest = Manifest {
        version: 1,
        id,
        created_at: time::OffsetDateTime::now_utc(),
        expires_at: None,
        labels: Default::default(),
        root: root.unwrap(),
        entries,
        bytes: 0,
        excluded: Vec::new(),
        skipped: Skipped::default(),
        archive: Some(ArchiveInfo {
            format: ARCHIVE_FORMAT.to_owned(),
            length: archive.len() as u64,
            digest: blake3::hash(&archive).to_hex().to_string(),
            unpacked_length,
        }),
        layers: Vec::new(),
        listing: listing.finish().unwrap(),
    };
    fs::write(place.join(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
    id
}

struct Room {
    dir: TempDir,
    store: LocalStore,
}

impl Room {
    fn new(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("outside"), b"outside").unwrap();
        fs::create_dir(dir.path().join("into")).unwrap();
        let settings = Settings {
            limits,
            ..Settings::default()
        };
        let store = LocalStore::open_with(&dir.path().join("store"), settings).unwrap();
        Self { dir, store }
    }

    fn restore(&self, tar: &[u8]) -> Result<Manifest, SnapshotError> {
        self.restore_as(tar, tar.len() as u64)
    }

    fn restore_as(&self, tar: &[u8], unpacked_length: u64) -> Result<Manifest, SnapshotError> {
        let id = forge(&self.store, tar, unpacked_length);
        let into = File::open(self.dir.path().join("into")).unwrap();
        let restored = self.store.restore(id, into.into());
        self.nothing_outside();
        restored
    }

    fn nothing_outside(&self) {
        let outside = self.dir.path().join("outside");
        assert_eq!(fs::read(&outside).unwrap(), b"outside");
        assert_eq!(
            std::os::unix::fs::MetadataExt::nlink(&outside.metadata().unwrap()),
            1
        );
        assert_eq!(fs::read_dir(self.dir.path()).unwrap().count(), 3);
        assert!(!Path::new("/tmp/hutch-escaped").exists());
    }
}

#[track_caller]
fn refused(result: Result<Manifest, SnapshotError>, expected: &str) {
    match result {
        Err(SnapshotError::Corrupt { which, reason, .. }) => {
            assert_eq!(which, Part::Archive, "{reason}");
            assert!(reason.contains(expected), "{reason:?} is not {expected:?}");
        }
        other => panic!("{other:?} is not {expected:?}"),
    }
}

#[test]
fn a_forged_archive_that_is_fine_is_unpacked() {
    let room = Room::new(Limits::default());
    let members = [
        root(),
        directory("a"),
        file("a/b"),
        symlink("c", "a"),
        link("d", "a/b"),
    ];
    room.restore(&tar(&members)).unwrap();
    assert!(room.dir.path().join("into/d").exists());
}

#[test]
fn members_that_would_land_elsewhere_are_refused() {
    let long = "n".repeat(256);
    let device = |major| Body::CharDevice { major, minor: 3 };
    let mut labelled = file("a");
    labelled.xattrs.push(Xattr {
        name: b"security.selinux"[..].into(),
        value: b"x"[..].into(),
    });
    let cases: &[(&str, Vec<Member>)] = &[
        ("absolute path", vec![root(), file("/tmp/hutch-escaped")]),
        ("absolute path", vec![root(), directory("/")]),
        ("dot name", vec![root(), file("../outside")]),
        (
            "dot name",
            vec![root(), directory("a"), file("a/../../outside")],
        ),
        ("dot name", vec![root(), directory("a"), file("a/..")]),
        ("dot name", vec![root(), file(".")]),
        ("empty name", vec![root(), directory("a"), file("a//b")]),
        ("empty name", vec![root(), file("a/")]),
        ("empty name", vec![root(), root()]),
        ("over 255 bytes", vec![root(), file(&long)]),
        (
            "apart from its directory",
            vec![root(), symlink("a", ".."), file("a/outside")],
        ),
        (
            "apart from its directory",
            vec![root(), symlink("a", "/tmp"), file("a/hutch-escaped")],
        ),
        ("apart from its directory", vec![root(), file("a/b")]),
        (
            "apart from its directory",
            vec![root(), file("a"), file("a/b")],
        ),
        (
            "apart from its directory",
            vec![root(), directory("a"), file("b"), file("a/c")],
        ),
        ("twice or out of order", vec![root(), file("a"), file("a")]),
        (
            "twice or out of order",
            vec![root(), directory("a"), directory("a")],
        ),
        (
            "twice or out of order",
            vec![root(), directory("a"), symlink("a", "..")],
        ),
        ("twice or out of order", vec![root(), file("b"), file("a")]),
        (
            "did not come before",
            vec![root(), link("a", "b"), file("b")],
        ),
        ("did not come before", vec![root(), link("a", "a")]),
        (
            "did not come before",
            vec![root(), symlink("a", ".."), link("b", "a/outside")],
        ),
        (
            "did not come before",
            vec![root(), file("a"), link("b", "a/x")],
        ),
        ("absolute path", vec![root(), link("a", "/etc/passwd")]),
        ("dot name", vec![root(), link("a", "../outside")]),
        (
            "hard link to a directory",
            vec![root(), directory("a"), link("b", "a")],
        ),
        ("device node", vec![root(), member("a", device(1))]),
        (
            "device node",
            vec![
                root(),
                member("a", Body::BlockDevice { major: 0, minor: 0 }),
            ],
        ),
        ("begin with the root", vec![file("a")]),
        ("begin with the root", vec![directory("a")]),
        ("security.selinux", vec![root(), labelled]),
    ];
    for (expected, members) in cases {
        let room = Room::new(Limits::default());
        refused(room.restore(&tar(members)), expected);
    }
}

#[test]
fn archives_that_lie_about_lengths_are_refused() {
    let plain = tar(&[root(), file("a")]);
    let huge = |size| {
        let mut writer = Writer::new(Vec::new());
        writer.member(&root()).unwrap();
        writer.member(&member("a", Body::File { size })).unwrap();
        writer.stream().clone()
    };
    let mut after_end = plain.clone();
    after_end.extend_from_slice(&[1; 512]);
    let mut no_end = plain.clone();
    no_end.truncate(no_end.len() - 1024);
    let mut checksum = plain.clone();
    checksum[512] ^= 1;
    for (expected, tar) in [
        ("ends too early", huge(1 << 20)),
        ("ends too early", huge(1 << 60)),
        ("ends too early", huge(u64::MAX)),
        ("ends too early", no_end),
        ("ends too early", Vec::new()),
        ("goes on after its end", after_end),
        ("wrong checksum", checksum),
    ] {
        let room = Room::new(Limits::default());
        refused(room.restore(&tar), expected);
    }
    let room = Room::new(Limits::default());
    refused(
        room.restore_as(&plain, plain.len() as u64 - 1),
        "more bytes",
    );
}

#[test]
fn a_small_archive_grows_no_further_than_the_limit() {
    let limits = Limits {
        unpacked_bytes: 1 << 20,
        ..Limits::default()
    };
    let bomb = tar(&[root(), member("a", Body::File { size: 64 << 20 })]);
    let room = Room::new(limits);
    // Whether it says how large it is or not.
    let honest = room.restore(&bomb);
    assert!(matches!(
        honest,
        Err(SnapshotError::LimitExceeded {
            which: LimitKind::UnpackedBytes,
            limit: 1_048_576
        })
    ));
    refused(room.restore_as(&bomb, 1 << 20), "more bytes");
    let written = fs::metadata(room.dir.path().join("into/a")).map(|file| file.len());
    assert!(written.unwrap_or(0) <= 1 << 20);
}

#[test]
fn each_member_of_an_archive_keeps_within_its_limits() {
    let all = Limits::default();
    let path = Limits {
        path_bytes: 12,
        ..all
    };
    let metadata = Limits {
        entry_bytes: 99,
        ..all
    };
    let holes = Body::Sparse {
        size: 1 << 20,
        segments: Vec::new(),
    };
    for (limits, member, kind, bound) in [
        (
            path,
            member("thirteen-long", Body::Fifo),
            LimitKind::PathBytes,
            12,
        ),
        (metadata, member("a", holes), LimitKind::EntryBytes, 99),
    ] {
        match Room::new(limits).restore(&tar(&[root(), member])) {
            Err(SnapshotError::LimitExceeded { which, limit }) => {
                assert_eq!((which, limit), (kind, bound));
            }
            other => panic!("{other:?} is not {kind:?}"),
        }
    }
}

#[test]
fn holes_cost_nothing_however_large() {
    let body = Body::Sparse {
        size: 1 << 43,
        segments: vec![Segment {
            offset: 1 << 42,
            length: 5,
        }],
    };
    let room = Room::new(Limits::default());
    room.restore(&tar(&[root(), member("a", body)])).unwrap();
    let file = fs::metadata(room.dir.path().join("into/a")).unwrap();
    assert_eq!(file.len(), 1 << 43);
}
