//! Entering and leaving namespaces.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Leaves the caller's namespaces of these kinds for new ones.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only CLONE_FILES and CLONE_FS style flags could pull descriptors
    // from under another thread, and callers have a single thread.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Enters a user namespace.
pub fn enter_user(namespace: &OwnedFd) -> io::Result<()> {
    Ok(move_into_link_name_space(
        namespace.as_fd(),
        Some(LinkNameSpaceType::User),
    )?)
}
