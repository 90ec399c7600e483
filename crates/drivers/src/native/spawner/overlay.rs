//! Overlays over layers with mapped ids.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::StatVfsMountFlags;
use rustix::mount::MountAttrFlags;
use rustix::thread::{Gid, Uid};

use super::mounts;
use super::step::Step;

/// An overlay of `lower` layers, the topmost first, with `<upper>/upper` and
/// `<upper>/work`.
///
/// The kernel works in the upper layer as who mounted it, so the mounter must
/// be the sandbox's root: as host root, whose id the layer's map does not
/// have, the overlay would come up read-only without an error. The caller has
/// set its ids not to take capabilities along.
pub fn mount(lower: &[&str], upper: &str, base: u32) -> io::Result<OwnedFd> {
    let lower = lower.join(":");
    let (upper, work) = (format!("{upper}/upper"), format!("{upper}/work"));
    set_fs_ids(base);
    let made = mounts::new(
        "overlay",
        &[
            ("source", "overlay"),
            ("lowerdir", &lower),
            ("upperdir", &upper),
            ("workdir", &work),
        ],
        MountAttrFlags::MOUNT_ATTR_NODEV,
    );
    set_fs_ids(0);
    let made = made.step("make an overlay")?;
    let flags = rustix::fs::fstatvfs(&made)?.f_flag;
    if flags.contains(StatVfsMountFlags::RDONLY) {
        return Err(io::Error::other("an overlay came up read-only"));
    }
    Ok(made)
}

/// Sets who the caller is for file systems alone.
fn set_fs_ids(id: u32) {
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    // SAFETY: both calls take any number and change this thread only.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, gid.as_raw());
        libc::syscall(libc::SYS_setfsuid, uid.as_raw());
    }
}
