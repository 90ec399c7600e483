//! Trees to save, and a store to save them in.
#![allow(clippy::unwrap_used, dead_code)]

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use hutch_snapshots::{LocalStore, Manifest, Rules, SaveMeta, Settings, TreeFingerprint};
use rustix::fs::{CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use tempfile::TempDir;

/// A store and room for trees beside it, removed with all in it.
pub struct Fixture {
    pub dir: TempDir,
    pub store: LocalStore,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        Self::at(tempfile::tempdir().unwrap(), settings)
    }

    /// In memory where there is a place for that: for what makes many files and
    /// says nothing about a disk.
    pub fn in_memory() -> Self {
        let memory = tempfile::tempdir_in("/dev/shm");
        let dir = memory.or_else(|_| tempfile::tempdir()).unwrap();
        Self::at(dir, Settings::default())
    }

    fn at(dir: TempDir, settings: Settings) -> Self {
        let store = LocalStore::open_with(&dir.path().join("store"), settings).unwrap();
        Self { dir, store }
    }

    /// A new empty directory.
    pub fn empty(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    }

    pub fn save(&self, tree: &Path) -> Manifest {
        self.store.save(open(tree), SaveMeta::default()).unwrap()
    }

    /// Saves a tree and restores it beside.
    pub fn cycle(&self, tree: &Path, name: &str) -> PathBuf {
        let manifest = self.save(tree);
        let into = self.empty(name);
        let restored = self.store.restore(manifest.id, open(&into)).unwrap();
        assert_eq!(restored, manifest);
        into
    }

    /// Saves what changed since `base`.
    pub fn save_on(&self, tree: &Path, base: &Manifest) -> Manifest {
        let meta = SaveMeta {
            base: Some(base.id),
            ..SaveMeta::default()
        };
        self.store.save(open(tree), meta).unwrap()
    }

    /// The only layer of a snapshot, or the last.
    pub fn layer(&self, manifest: &Manifest) -> PathBuf {
        let digest = &manifest.layers.last().unwrap().digest;
        let layers = self.dir.path().join("store/layers");
        layers.join(format!("{digest}.tar.zst"))
    }

    /// The directory of one snapshot.
    pub fn place(&self, manifest: &Manifest) -> PathBuf {
        self.dir
            .path()
            .join("store/snapshots")
            .join(manifest.id.to_string())
    }
}

pub fn open(path: &Path) -> OwnedFd {
    File::open(path).unwrap().into()
}

pub fn fingerprint(path: &Path) -> TreeFingerprint {
    TreeFingerprint::of(open(path), Rules::workspace()).unwrap()
}

#[track_caller]
pub fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (fingerprint(one), fingerprint(other));
    assert_eq!(one.diff(&other), Vec::<String>::new());
    assert_eq!(one, other);
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub fn set_time(path: &Path, seconds: i64, nanos: i64) {
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: nanos,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

pub fn set_owner(path: &Path, uid: u32, gid: u32) {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    let no_follow = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::chownat(CWD, path, Some(uid), Some(gid), no_follow).unwrap();
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub fn set_xattr(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::setxattr(path, name, value, XattrFlags::empty()).unwrap();
}

pub fn fifo(path: &Path, mode: u32) {
    rustix::fs::mkfifoat(CWD, path, Mode::from_raw_mode(mode)).unwrap();
}

pub fn device(path: &Path, kind: FileType, major: u32, minor: u32) {
    let device = rustix::fs::makedev(major, minor);
    rustix::fs::mknodat(CWD, path, kind, Mode::RUSR, device).unwrap();
}

/// One entry of every kind and oddity that this user may make.
pub fn everything(root: &Path) {
    let at = |name: &str| root.join(name);
    fs::write(at("empty"), b"").unwrap();
    fs::write(at("plain"), b"hello\n").unwrap();
    set_time(&at("plain"), 1_600_000_000, 123_456_789);
    fs::write(at("block"), [7; 512]).unwrap();
    fs::write(at("blocks"), vec![9; 3 * 512 + 1]).unwrap();
    fs::write(at("zeros"), vec![0; 1 << 16]).unwrap();
    fs::write(at("before 1970"), b"x").unwrap();
    set_time(&at("before 1970"), -2, 750_000_000);
    fs::write(at("after 2400"), b"x").unwrap();
    set_time(&at("after 2400"), 14_000_000_000, 1);

    // Names.
    for name in [
        "new\nline",
        "quote\"'`$",
        "-rf",
        " ",
        "ünï→",
        "back\\slash",
        "tab\t",
        "%",
        "a=b",
    ] {
        fs::write(at(name), name).unwrap();
    }
    let bytes = std::ffi::OsStr::from_bytes(b"not utf-8 \xff\xfe\x80");
    fs::write(root.join(bytes), b"bytes").unwrap();
    let bytes = std::ffi::OsStr::from_bytes(b"directory \xff");
    fs::create_dir(root.join(bytes)).unwrap();
    fs::write(root.join(bytes).join("inside"), b"x").unwrap();
    fs::write(at(&"n".repeat(100)), b"100").unwrap();
    fs::write(at(&"n".repeat(101)), b"101").unwrap();
    fs::write(at(&"n".repeat(255)), b"255").unwrap();
    fs::write(at("GNUSparseFile.0"), b"x").unwrap();
    fs::write(at("PaxHeaders"), b"x").unwrap();

    // Directories.
    fs::create_dir_all(at("a/b/c")).unwrap();
    fs::write(at("a/b/c/deep"), b"deep").unwrap();
    fs::write(at("a.b"), b"sorts between a and a/b").unwrap();
    fs::create_dir(at("empty directory")).unwrap();
    set_time(&at("empty directory"), 1_234_567_890, 5);
    fs::create_dir(at("sticky")).unwrap();
    set_mode(&at("sticky"), 0o1777);
    fs::create_dir(at("set group")).unwrap();
    fs::write(at("set group/file"), b"x").unwrap();
    set_mode(&at("set group"), 0o2770);

    // Links.
    symlink("plain", at("link")).unwrap();
    set_time(&at("link"), 1_500_000_000, 42);
    symlink("/etc/passwd", at("absolute link")).unwrap();
    symlink("../../../outside", at("link out")).unwrap();
    symlink("nothing\nat all", at("dangling link")).unwrap();
    symlink("x".repeat(4000), at("long link")).unwrap();
    symlink(std::ffi::OsStr::from_bytes(b"\xff\xfe"), at("bytes link")).unwrap();
    symlink(".", at("loop link")).unwrap();
    fs::hard_link(at("plain"), at("hard link")).unwrap();
    fs::hard_link(at("plain"), at("a/b/hard link")).unwrap();
    fs::hard_link(at("link"), at("hard link to link")).unwrap();
    fs::hard_link(at("empty"), at("hard link to empty")).unwrap();
    fs::hard_link(at(&"n".repeat(255)), at(&"m".repeat(255))).unwrap();

    // Others.
    fifo(&at("fifo"), 0o640);
    set_time(&at("fifo"), 1_400_000_000, 9);
    fs::hard_link(at("fifo"), at("hard link to fifo")).unwrap();

    // Holes.
    let sparse = |name: &str, size: u64, parts: &[(u64, &[u8])]| {
        let file = File::create(at(name)).unwrap();
        file.set_len(size).unwrap();
        for (offset, bytes) in parts {
            file.write_all_at(bytes, *offset).unwrap();
        }
    };
    sparse("all hole", 1 << 20, &[]);
    sparse("huge hole", 1 << 40, &[(1 << 39, b"middle")]);
    sparse("hole first", 1 << 20, &[((1 << 20) - 3, b"end")]);
    sparse("hole last", (1 << 20) + 17, &[(0, b"start")]);
    sparse(
        "holes",
        5 << 20,
        &[(0, b"a"), (1 << 20, &[1; 70_000]), (3 << 20, b"c")],
    );
    sparse(
        &format!("holes {}", "n".repeat(200)),
        1 << 20,
        &[(1 << 19, b"x")],
    );
    let bytes = std::ffi::OsStr::from_bytes(b"holes \xff");
    File::create(root.join(bytes))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();

    // Attributes.
    set_xattr(&at("plain"), "user.text", b"value");
    set_xattr(&at("plain"), "user.bytes", b"\x00\xff\n=\n12 a=b\n");
    set_xattr(&at("plain"), "user.empty", b"");
    set_xattr(&at("plain"), "user.odd=%name\n", b"1");
    set_xattr(&at("a"), "user.on directory", b"2");
    set_xattr(&at("holes"), "user.on sparse", b"3");
    set_xattr(&at("set group"), "system.posix_acl_default", ACL);
    set_xattr(&at("blocks"), "system.posix_acl_access", ACL);

    // Left out.
    fs::create_dir_all(at("node_modules/package")).unwrap();
    fs::create_dir_all(at("a/node_modules")).unwrap();
    fs::write(at("a/node_modules/x"), b"x").unwrap();
    fs::write(at("a/b/node_modules"), b"a file is kept").unwrap();
    symlink("../elsewhere", at("a/b/c/node_modules")).unwrap();
    std::os::unix::net::UnixListener::bind(at("socket")).unwrap();

    // Nobody may read these.
    fs::write(at("secret"), b"secret").unwrap();
    set_mode(&at("secret"), 0o000);
    fs::create_dir(at("closed")).unwrap();
    fs::write(at("closed/inside"), b"inside").unwrap();
    set_mode(&at("closed/inside"), 0o000);
    if is_root() {
        as_root(root);
        set_mode(&at("closed"), 0o000);
    }
    set_time(&at("a"), 1_000_000_000, 999_999_999);
    set_mode(root, 0o3750);
    set_time(root, 1_111_111_111, 111_111_111);
}

/// What only root can make.
fn as_root(root: &Path) {
    let at = |name: &str| root.join(name);
    for (name, uid, gid) in [
        ("owned", 1000, 1000),
        ("owned by many", 2_097_151, 2_097_152),
        ("owned by most", 4_294_967_294, 4_000_000_000),
    ] {
        fs::write(at(name), name).unwrap();
        set_owner(&at(name), uid, gid);
    }
    set_owner(&at("link"), 5, 6);
    set_owner(&at("fifo"), 7, 8);
    set_owner(&at("closed/inside"), 9, 10);
    set_owner(&at("closed"), 11, 12);
    fs::write(at("set user"), b"#!").unwrap();
    set_owner(&at("set user"), 1000, 1001);
    set_mode(&at("set user"), 0o6755);
    fs::write(at("capable"), b"#!").unwrap();
    // Version 2, cap_net_raw permitted and effective.
    let mut capability = vec![0; 20];
    capability[..8].copy_from_slice(&[1, 0, 0, 2, 0, 0x20, 0, 0]);
    set_xattr(&at("capable"), "security.capability", &capability);
    device(&at("whiteout"), FileType::CharacterDevice, 0, 0);
    set_owner(&at("whiteout"), 3, 4);
    device(&at("null"), FileType::CharacterDevice, 1, 3);
    device(&at("disk"), FileType::BlockDevice, 7, 200);
}

/// An access list: user rwx, user 1000 r-x, group r-x, mask r-x, other none.
const ACL: &[u8] = &[
    2, 0, 0, 0, //
    1, 0, 7, 0, 0xff, 0xff, 0xff, 0xff, //
    2, 0, 5, 0, 0xe8, 3, 0, 0, //
    4, 0, 5, 0, 0xff, 0xff, 0xff, 0xff, //
    0x10, 0, 5, 0, 0xff, 0xff, 0xff, 0xff, //
    0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
];
