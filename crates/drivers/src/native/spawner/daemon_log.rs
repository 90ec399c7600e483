//! What a daemon writes to its standard streams, drained into the sandbox's
//! log.
//!
//! The daemon is hostile: it may flood, and it may hand the pipe on. A bucket
//! bounds what is read, so neither the disk nor this loop is its to fill; a
//! full pipe never blocks an honest daemon, since its end does not block.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use hutch_protocol::Timestamp;

use crate::boot_log::BootLog;

/// How many bytes a second a daemon may write on and on.
const RATE: u64 = 16 * 1024;
/// How many bytes it may write at once.
const BURST: u64 = 64 * 1024;
/// How much is read in one step.
const STEP: usize = 16 * 1024;

/// The host's end of a daemon's standard streams.
#[derive(Debug)]
pub struct DaemonLog {
    log: BootLog,
    pipe: Option<OwnedFd>,
    /// Bytes that may be read now.
    credit: u64,
    counted: Instant,
    /// Whether the last byte ended a line.
    fresh_line: bool,
}

impl DaemonLog {
    /// A log, and the end of the pipe for the daemon.
    pub fn open(log: BootLog) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs): (PipeReader, PipeWriter) = io::pipe()?;
        rustix::io::ioctl_fionbio(&theirs, true)?;
        Ok((Self::resume(log, Some(ours.into()))?, theirs.into()))
    }

    /// Goes on with a pipe that is there, or without one.
    pub fn resume(log: BootLog, pipe: Option<OwnedFd>) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Self {
            log,
            pipe,
            credit: BURST,
            counted: Instant::now(),
            fresh_line: true,
        })
    }

    /// The pipe.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// What to wait on; nothing while the daemon has written too much.
    pub fn source(&self) -> Option<BorrowedFd<'_>> {
        self.pipe().filter(|_| self.credit > 0)
    }

    /// How long it is not read, if it is held up.
    pub fn held_up(&self) -> Option<Duration> {
        (self.pipe.is_some() && self.credit == 0).then_some(Duration::from_millis(250))
    }

    /// Reads what is there, as far as the rate allows.
    pub fn drain(&mut self) {
        self.count();
        let mut bytes = vec![0; STEP];
        while let Some(pipe) = &self.pipe {
            let most = STEP.min(usize::try_from(self.credit).unwrap_or(STEP));
            let Some(room) = bytes.get_mut(..most).filter(|room| !room.is_empty()) else {
                return;
            };
            match rustix::io::read(pipe, room) {
                Ok(0) => self.pipe = None,
                Ok(got) => {
                    self.credit = self.credit.saturating_sub(got as u64);
                    let got = bytes.get(..got).unwrap_or_default();
                    self.fresh_line = got.ends_with(b"\n");
                    // A full disk costs the log, never the sandbox.
                    let _ = self.log.append(got);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn count(&mut self) {
        let now = Instant::now();
        let passed = now.duration_since(self.counted);
        let gained = u64::try_from(passed.as_millis())
            .unwrap_or(u64::MAX)
            .saturating_mul(RATE)
            / 1000;
        if gained > 0 {
            self.credit = self.credit.saturating_add(gained).min(BURST);
            self.counted = now;
        }
    }

    /// Adds a line of the spawner's own.
    pub fn note(&mut self, line: &str) {
        let end = if self.fresh_line { "" } else { "\n" };
        let _ = self
            .log
            .append(format!("{end}{} hutch: {line}\n", Timestamp::now()).as_bytes());
        self.fresh_line = true;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::boot_log::{LOGS, WHOLE};

    #[test]
    fn a_flood_is_read_at_a_bounded_rate_and_never_blocks_its_writer() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(LOGS)).unwrap();
        let sandbox = crate::SandboxKey {
            project: hutch_protocol::ProjectId::random(),
            name: "main".parse().unwrap(),
        };
        let kept = BootLog::of(dir.path(), &sandbox);
        let (mut log, daemon) = DaemonLog::open(kept.clone()).unwrap();
        let line = [b'x'; 4096];
        let mut blocked = false;
        for _ in 0..100 {
            while rustix::io::write(&daemon, &line).is_ok() {}
            blocked |= log.source().is_none();
            log.drain();
        }
        assert!(blocked && log.held_up().is_some());
        log.note("that was much");
        let tail = kept.tail(WHOLE).unwrap();
        // The burst, and what a slow machine let pass meanwhile.
        assert!(tail.text.len() < 4 * BURST as usize, "{}", tail.text.len());
        assert!(tail.text.ends_with("hutch: that was much\n"));
        drop(daemon);
        log.credit = BURST;
        log.drain();
        while log.pipe().is_some() {
            log.credit = BURST;
            log.drain();
        }
    }
}
