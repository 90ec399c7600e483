//! Descriptors that this process was started with.

use rustix::fd::{FromRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static ADOPTED: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

/// Takes ownership of an inherited descriptor and marks it close-on-exec.
/// Each number can be taken once, before anything else opens descriptors.
///
/// # Errors
/// `BADF` when the number is one of the standard streams, is not open, or was taken before.
pub fn adopt(number: RawFd) -> Result<OwnedFd, Errno> {
    if number <= 2 {
        return Err(Errno::BADF);
    }
    // SAFETY: F_GETFD on any number is harmless; it fails for one that is not open.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
        return Err(Errno::BADF);
    }
    let mut adopted = ADOPTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !adopted.insert(number) {
        return Err(Errno::BADF);
    }
    // SAFETY: the descriptor is open (checked above) and nobody else owns it: it came
    // from our parent and this function hands each number out once.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)?;
    Ok(descriptor)
}

/// Opens `/dev/null` on each standard stream that is closed, so that no later
/// descriptor takes its number.
///
/// # Errors
/// `/dev/null` cannot be opened.
pub fn ensure_standard_descriptors() -> Result<(), Errno> {
    for number in 0..=2 {
        // SAFETY: F_GETFD on any number is harmless.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } != -1 {
            continue;
        }
        // SAFETY: the path is a C string; the lowest free number, `number`, is meant to stay open.
        let opened = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        if opened != number {
            return Err(Errno::BADF);
        }
    }
    Ok(())
}
