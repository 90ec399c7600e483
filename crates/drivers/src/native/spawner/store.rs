//! Descriptors that outlive a program: the spawner hands every one that
//! matters to the program that it becomes, by number.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Descriptors that stay open at the next exec, until this is dropped.
#[derive(Debug, Default)]
pub struct Outgoing<'a>(Vec<BorrowedFd<'a>>);

impl<'a> Outgoing<'a> {
    /// Keeps a descriptor open and gives its number.
    pub fn keep(&mut self, fd: BorrowedFd<'a>) -> io::Result<i32> {
        fcntl_setfd(fd, FdFlags::empty())?;
        self.0.push(fd);
        Ok(fd.as_raw_fd())
    }
}

impl Drop for Outgoing<'_> {
    /// The exec failed: nothing may leak into what is started later.
    fn drop(&mut self) {
        for fd in &self.0 {
            let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
        }
    }
}

/// Descriptors that came from the program before. Each can be taken once.
#[derive(Debug, Default)]
pub struct Incoming(BTreeSet<i32>);

impl Incoming {
    /// Takes one over.
    pub fn take(&mut self, number: i32) -> io::Result<OwnedFd> {
        if number <= 2 || !self.0.insert(number) {
            return Err(io::Error::other(format!(
                "descriptor {number} is on record twice or for two things"
            )));
        }
        // SAFETY: the number is only looked at, which fails if it is closed.
        let seen = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_getfd(seen)
            .and_then(|_| fcntl_setfd(seen, FdFlags::CLOEXEC))
            .map_err(|cause| io::Error::other(format!("descriptor {number}: {cause}")))?;
        // SAFETY: it is open, the program before left it to this one, and the
        // set says that nobody took it yet.
        Ok(unsafe { OwnedFd::from_raw_fd(number) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::fd::{AsFd, IntoRawFd};

    use super::*;

    #[test]
    fn what_is_kept_crosses_an_exec_until_it_is_given_up() {
        let (reader, _writer) = io::pipe().unwrap();
        let mut outgoing = Outgoing::default();
        outgoing.keep(reader.as_fd()).unwrap();
        assert!(!fcntl_getfd(&reader).unwrap().contains(FdFlags::CLOEXEC));
        drop(outgoing);
        assert!(fcntl_getfd(&reader).unwrap().contains(FdFlags::CLOEXEC));
    }

    #[test]
    fn a_number_is_taken_once_and_only_while_it_is_open() {
        let (reader, _writer) = io::pipe().unwrap();
        let number = OwnedFd::from(reader).into_raw_fd();
        let mut incoming = Incoming::default();
        let taken = incoming.take(number).unwrap();
        assert!(incoming.take(number).is_err());
        drop(taken);
        assert!(Incoming::default().take(i32::MAX).is_err());
        assert!(Incoming::default().take(1).is_err());
    }
}
