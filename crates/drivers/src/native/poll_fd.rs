//! Descriptors that the runtime waits on.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the runtime.
#[expect(
    deprecated,
    reason = "its successor is an unsafe call for types that may close early; an OwnedFd does not"
)]
pub fn new(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}
