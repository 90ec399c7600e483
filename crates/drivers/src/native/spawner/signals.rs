//! Signals become something to poll: SIGTERM and SIGINT end the spawner,
//! SIGUSR2 has it become the program that is now at its path.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To end, with everything that it holds.
    End,
    /// To become the program at its path.
    Upgrade,
}

/// The next signal that came, if one did.
pub fn next(signals: &OwnedFd) -> Option<Wish> {
    let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
    let got = rustix::io::read(signals, &mut info).ok()?;
    let number = info.get(..got)?.first_chunk::<4>()?;
    Some(match i32::from_ne_bytes(*number) {
        libc::SIGUSR2 => Wish::Upgrade,
        _ => Wish::End,
    })
}

/// A descriptor that is readable once a signal came.
pub fn open() -> io::Result<OwnedFd> {
    let set = mask(&[libc::SIGTERM, libc::SIGINT, libc::SIGUSR2]);
    block(libc::SIG_BLOCK, &set)?;
    // SAFETY: the set is initialised, and -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Blocks nothing, as a program expects it that is started.
pub fn restore() -> io::Result<()> {
    block(libc::SIG_SETMASK, &mask(&[]))
}

fn mask(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: an all-zero set is valid memory for sigemptyset to fill, and the
    // signals are valid numbers.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

fn block(how: i32, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is initialised; the old one is not asked for.
    let done = unsafe { libc::sigprocmask(how, set, std::ptr::null_mut()) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
