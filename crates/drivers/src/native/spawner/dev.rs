//! The sandbox's `/dev`: the harmless devices, terminals and shared memory.

use std::fs;
use std::io;
use std::os::unix::fs::{chown, lchown, symlink};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::mount::{MountAttrFlags, MountFlags};

use super::mounts;
use super::step::Step;

/// Name, major and minor number.
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// The group `tty` inside.
const TTY: u32 = 5;
/// How many terminals there are: the machine has a few thousand for all.
const PTYS: &str = "256";
/// How much of `/dev/shm` there is for each file in it.
const BYTES_PER_FILE: u64 = 16 * 1024;

/// Mounts it at `/dev` for the user namespace that starts at `base`.
pub fn mount(base: u32) -> io::Result<()> {
    let owner = base.to_string();
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let dev = mounts::new(
        "tmpfs",
        &[
            ("mode", "0755"),
            ("uid", &owner),
            ("gid", &owner),
            ("size", "64k"),
            ("nr_inodes", "256"),
        ],
        flags,
    )
    .step("make /dev")?;
    mounts::attach(dev, "/dev").step("attach /dev")?;
    for (name, major, minor) in DEVICES {
        let path = format!("/dev/{name}");
        let mode = Mode::from_raw_mode(0o666);
        mknodat(
            CWD,
            &path,
            FileType::CharacterDevice,
            mode,
            makedev(major, minor),
        )
        .step("make a device")?;
        rustix::fs::chmod(&path, mode)?;
        chown(&path, Some(base), Some(base))?;
    }
    for (name, target) in LINKS {
        let path = format!("/dev/{name}");
        symlink(target, &path)?;
        lchown(&path, Some(base), Some(base))?;
    }
    for name in ["pts", "shm"] {
        fs::create_dir(format!("/dev/{name}"))?;
    }
    let group = (base + TTY).to_string();
    let pts = mounts::new(
        "devpts",
        &[
            ("mode", "0620"),
            ("ptmxmode", "0666"),
            ("gid", &group),
            ("max", PTYS),
        ],
        flags,
    )
    .step("make /dev/pts")?;
    mounts::attach(pts, "/dev/pts")?;
    let shm = mounts::new(
        "tmpfs",
        &[("mode", "1777"), ("uid", &owner), ("gid", &owner)],
        flags | MountAttrFlags::MOUNT_ATTR_NODEV,
    )
    .step("make /dev/shm")?;
    mounts::attach(shm, "/dev/shm")
}

/// Bounds `/dev/shm`, so that files there alone never fill the memory of
/// commands: those would outlive every process that is killed for it. An empty
/// file takes memory, too, about a kilobyte.
pub fn limit_shm(bytes: u64) -> io::Result<()> {
    let files = bytes / BYTES_PER_FILE;
    let options = std::ffi::CString::new(format!("size={bytes},nr_inodes={files}"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(rustix::mount::mount_remount("/dev/shm", flags, &options)?)
}

/// Mounts an empty `/run`.
pub fn mount_run(base: u32) -> io::Result<()> {
    let owner = base.to_string();
    let run = mounts::new(
        "tmpfs",
        &[
            ("mode", "0755"),
            ("uid", &owner),
            ("gid", &owner),
            ("size", "64m"),
            ("nr_inodes", "8192"),
        ],
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )
    .step("make /run")?;
    mounts::attach(run, "/run")?;
    fs::create_dir("/run/lock")?;
    rustix::fs::chmod("/run/lock", Mode::from_raw_mode(0o1777))?;
    chown("/run/lock", Some(base), Some(base))
}
