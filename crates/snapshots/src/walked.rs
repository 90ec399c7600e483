//! What a walk found of each file's inode, kept for the next save: a file whose
//! inode, size and times are the same needs no reading.
//!
//! This is a hint on a local disk and never part of a snapshot. It is not
//! synced; one that is torn or of another tree is not used.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{Stat, Timespec, fstat};
use rustix::time::ClockId;

const MAGIC: &[u8; 8] = b"hutchw01";

/// A change within this time of the last look counts as one after it.
pub(crate) const DOUBT: i128 = 2_000_000_000;

/// What tells a state of a file from a later one, besides size and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) inode: u64,
    /// When it last changed, in nanoseconds.
    pub(crate) changed: i128,
}

impl Seen {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            changed: i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec),
        }
    }
}

/// One walk: the files in the order of the listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Walked {
    /// Device and inode of the root.
    root: (u64, u64),
    /// What changed later than this may differ from what was seen.
    pub(crate) certain_until: i128,
    pub(crate) files: Vec<Seen>,
}

impl Walked {
    /// A walk of `tree` that sees what changed until now less the doubt.
    pub(crate) fn begin(tree: BorrowedFd<'_>) -> io::Result<Self> {
        let certain_until = now() - DOUBT;
        Ok(Self {
            root: identity(tree)?,
            certain_until,
            files: Vec::new(),
        })
    }

    /// What was made in `tree` by this process alone, until now. Waits until
    /// the file system's clock has gone on, a few milliseconds: a change from
    /// here on has a later time.
    pub(crate) fn made(tree: BorrowedFd<'_>, files: Vec<Seen>) -> io::Result<Self> {
        let last = files.iter().map(|seen| seen.changed).max().unwrap_or(0);
        let begun = std::time::Instant::now();
        while now() <= last {
            if begun.elapsed() > std::time::Duration::from_secs(1) {
                // The clock was set back: rather read all than trust it.
                return Ok(Self {
                    root: identity(tree)?,
                    certain_until: i128::MIN,
                    files,
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(Self {
            root: identity(tree)?,
            certain_until: last,
            files,
        })
    }

    pub(crate) fn is_of(&self, tree: BorrowedFd<'_>) -> bool {
        identity(tree).is_ok_and(|root| root == self.root)
    }

    /// Replaces the file at `place`; `draft` is on the same file system.
    pub(crate) fn write(&self, draft: &Path, place: &Path) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.root.0.to_le_bytes());
        bytes.extend_from_slice(&self.root.1.to_le_bytes());
        bytes.extend_from_slice(&self.certain_until.to_le_bytes());
        for seen in &self.files {
            bytes.extend_from_slice(&seen.inode.to_le_bytes());
            bytes.extend_from_slice(&seen.changed.to_le_bytes());
        }
        let digest = blake3::hash(&bytes);
        let mut file = File::create(draft)?;
        file.write_all(&bytes)?;
        file.write_all(digest.as_bytes())?;
        drop(file);
        fs::rename(draft, place)
    }

    /// `None` if there is none, or none that is whole.
    pub(crate) fn read(place: &Path, most: u64) -> Option<Self> {
        let mut bytes = Vec::new();
        let limit = most
            .saturating_add(2)
            .saturating_mul(24)
            .saturating_add(128);
        File::open(place)
            .ok()?
            .take(limit)
            .read_to_end(&mut bytes)
            .ok()?;
        let (bytes, digest) = bytes.split_last_chunk::<32>()?;
        if blake3::hash(bytes) != blake3::Hash::from_bytes(*digest) {
            return None;
        }
        let (magic, bytes) = bytes.split_first_chunk::<8>()?;
        let (device, bytes) = bytes.split_first_chunk::<8>()?;
        let (inode, bytes) = bytes.split_first_chunk::<8>()?;
        let (until, bytes) = bytes.split_first_chunk::<16>()?;
        let (records, rest) = bytes.as_chunks::<24>();
        if magic != MAGIC || !rest.is_empty() {
            return None;
        }
        let seen = |record: &[u8; 24]| {
            let (inode, changed) = record.split_first_chunk::<8>()?;
            Some(Seen {
                inode: u64::from_le_bytes(*inode),
                changed: i128::from_le_bytes(*changed.first_chunk()?),
            })
        };
        Some(Self {
            root: (u64::from_le_bytes(*device), u64::from_le_bytes(*inode)),
            certain_until: i128::from_le_bytes(*until),
            files: records.iter().map(seen).collect::<Option<_>>()?,
        })
    }
}

fn identity(tree: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let stat = fstat(tree.as_fd())?;
    Ok((stat.st_dev, stat.st_ino))
}

/// The clock that file systems take their times from.
fn now() -> i128 {
    let Timespec { tv_sec, tv_nsec } = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
    i128::from(tv_sec) * 1_000_000_000 + i128::from(tv_nsec)
}
