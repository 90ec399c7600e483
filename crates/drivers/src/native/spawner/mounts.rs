//! The mount calls, by descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use rustix::path::Arg;

/// A new file system of `kind`. An option without value is a flag.
pub fn new(kind: &str, options: &[(&str, &str)], attr: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            fsconfig_set_flag(context.as_fd(), *key)?;
        } else {
            fsconfig_set_string(context.as_fd(), *key, *value)?;
        }
    }
    fsconfig_create(context.as_fd())?;
    Ok(fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        attr,
    )?)
}

/// A detached copy of the mount at `path`, without what is mounted below.
pub fn copy(path: impl Arg) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(open_tree(CWD, path, flags)?)
}

/// Attaches a detached mount at `path`.
pub fn attach(mount: impl AsFd, path: impl Arg) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(mount, c"", CWD, path, flags)?)
}

/// Attaches a detached mount at the directory `name` of `root`, whose content
/// is hostile: no link is followed.
pub fn attach_in(mount: impl AsFd, root: impl AsFd, name: &str) -> io::Result<()> {
    let target = target(root, name)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, c"", target, c"", flags)?)
}

/// Moves the mount at `path` to the directory `name` of `root`.
pub fn move_in(path: impl Arg, root: impl AsFd, name: &str) -> io::Result<()> {
    let target = target(root, name)?;
    Ok(move_mount(
        CWD,
        path,
        target,
        c"",
        MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
    )?)
}

fn target(root: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    Ok(openat2(
        root,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )?)
}

/// What to change of a detached mount.
#[derive(Clone, Copy, Default)]
pub struct Attributes<'a> {
    /// Flags to set.
    pub set: u64,
    /// Flags to clear.
    pub clear: u64,
    /// The user namespace whose ids the files are shown with.
    pub idmap: Option<&'a OwnedFd>,
    /// Whether mounts below change too.
    pub recursive: bool,
}

/// Changes a mount.
pub fn set(mount: impl AsFd, attributes: Attributes<'_>) -> io::Result<()> {
    let idmap = if attributes.idmap.is_some() {
        libc::MOUNT_ATTR_IDMAP
    } else {
        0
    };
    let mut wanted = libc::mount_attr {
        attr_set: attributes.set | idmap,
        attr_clr: attributes.clear,
        propagation: 0,
        userns_fd: attributes.idmap.map_or(0, |fd| fd.as_raw_fd() as u64),
    };
    let mut flags = libc::AT_EMPTY_PATH;
    if attributes.recursive {
        flags |= libc::AT_RECURSIVE;
    }
    // SAFETY: the descriptors are open for the call, the path is an empty C
    // string and `wanted` is a whole `mount_attr` whose size is passed along.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw mut wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Read-only, and nothing in it has an effect of its own.
pub const SHOWN_ONLY: u64 = libc::MOUNT_ATTR_RDONLY
    | libc::MOUNT_ATTR_NOSUID
    | libc::MOUNT_ATTR_NODEV
    | libc::MOUNT_ATTR_NOEXEC;
