//! The sandbox's `/proc` and `/sys`, less what tells of the machine.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, UnmountFlags, open_tree, unmount};

use super::mounts::{self, Attributes, SHOWN_ONLY};
use super::step::Step;

/// Files and directories that are covered by nothing: Docker's list and what
/// else names hardware, addresses or settings of the machine.
const MASKED: &[&str] = &[
    "acpi",
    "asound",
    "buddyinfo",
    "bus",
    "cmdline",
    "config.gz",
    "consoles",
    "diskstats",
    "dma",
    "driver",
    "dynamic_debug",
    "fs",
    "interrupts",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "locks",
    "modules",
    "mtrr",
    "pagetypeinfo",
    "partitions",
    "pressure",
    "sched_debug",
    "schedstat",
    "scsi",
    "slabinfo",
    "swaps",
    "timer_list",
    "timer_stats",
    "vmallocinfo",
    "zoneinfo",
];
const READ_ONLY: &[&str] = &["irq", "sys", "sysrq-trigger", "tty"];

/// What programs need of `/sys`: processors, memory nodes, huge pages and the
/// namespace's own links.
const SYS_SHOWN: &[&str] = &[
    "class/net",
    "devices/system/cpu",
    "devices/system/node",
    "devices/virtual/net",
    "kernel/mm/transparent_hugepage",
];

/// Mounts `/proc` of the caller's pid namespace.
pub fn mount_proc() -> io::Result<()> {
    let attr = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = mounts::new("proc", &[], attr).step("make /proc")?;
    mounts::attach(proc, "/proc").step("attach /proc")
}

/// Covers what is masked. `empty` and `void` are an empty file and directory.
pub fn mask_proc(empty: &str, void: &str) -> io::Result<()> {
    for name in MASKED {
        let path = format!("/proc/{name}");
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        let cover = mounts::copy(if found.is_dir() { void } else { empty })?;
        show_only(&cover)?;
        mounts::attach(cover, path.as_str()).step(&path)?;
    }
    for name in READ_ONLY {
        let path = format!("/proc/{name}");
        if Path::new(&path).exists() {
            let same = mounts::copy(path.as_str())?;
            show_only(&same)?;
            mounts::attach(same, path.as_str()).step(&path)?;
        }
    }
    Ok(())
}

/// Mounts a `/sys` of the caller's network namespace that has the shown parts
/// only, and the limits of its commands under `/sys/fs/cgroup`. `spare` is an
/// empty directory that is used in between.
pub fn mount_sys(spare: &str, groups: Vec<(&str, OwnedFd)>) -> io::Result<()> {
    let attr = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let whole = mounts::new("sysfs", &[], attr).step("make /sys")?;
    mounts::attach(whole, spare).step("attach sysfs")?;
    let shown = mounts::new("tmpfs", &[("mode", "0755"), ("size", "64k")], attr)?;
    mounts::attach(shown, "/sys").step("attach /sys")?;
    fs::create_dir_all("/sys/fs/cgroup")?;
    for name in SYS_SHOWN {
        let from = format!("{spare}/{name}");
        if !Path::new(&from).is_dir() {
            continue;
        }
        let to = format!("/sys/{name}");
        fs::create_dir_all(&to)?;
        let part = mounts::copy(from.as_str())?;
        show_only(&part)?;
        mounts::attach(part, to.as_str()).step(&to)?;
    }
    for (name, group) in groups {
        let to = format!("/sys/fs/cgroup/{name}");
        fs::create_dir(&to)?;
        show_only(&group)?;
        mounts::attach(group, to.as_str()).step(&to)?;
    }
    unmount(spare, UnmountFlags::DETACH)?;
    let sys = open_tree(CWD, "/sys", OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    show_only(&sys)
}

fn show_only(mount: &OwnedFd) -> io::Result<()> {
    mounts::set(
        mount,
        Attributes {
            set: SHOWN_ONLY,
            ..Attributes::default()
        },
    )
}
