//! What a walk found of each entry's inode, kept for the next save: a file whose
//! inode, size and times are the same needs no reading.
//!
//! This is a hint on a local disk and never part of a snapshot. It is not
//! synced; one that is torn, of another tree or from before the machine last
//! started is not used. The last because a disk may have got new contents and
//! not the new times when the power went.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{Stat, Timespec, fstat};
use rustix::time::ClockId;

use crate::Limits;

const MAGIC: &[u8; 8] = b"hutchw02";

/// A change within this time of the last look counts as one after it: some file
/// systems count seconds.
const DOUBT: i128 = 2_000_000_000;

/// The same for a time that shows that its file system counts finer: twice the
/// longest tick of a kernel's clock.
const TICKS: i128 = 20_000_000;

/// Most bytes of a step beside its name.
const STEP: u64 = 32;

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
            changed: nanos(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// A time as one number.
pub(crate) fn nanos(seconds: i64, nanos: impl Into<i128>) -> i128 {
    i128::from(seconds) * 1_000_000_000 + nanos.into()
}

/// What a walk does with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Goes into it.
    Directory,
    /// Keeps its content.
    File,
    /// Keeps what its inode says.
    Other,
}

/// One entry of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step<'a> {
    pub(crate) sort: Sort,
    /// How many directories to leave first.
    pub(crate) up: u32,
    pub(crate) name: &'a [u8],
    pub(crate) seen: Seen,
}

/// Entries in the order of the listing, in the form that the disk has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Steps(Vec<u8>);

impl Steps {
    pub(crate) fn push(&mut self, step: Step<'_>) {
        let sort = match step.sort {
            Sort::Directory => 0,
            Sort::File => 1,
            Sort::Other => 2,
        };
        // No file system has longer names.
        let length = u16::try_from(step.name.len()).unwrap_or(u16::MAX);
        let name = step.name.get(..usize::from(length)).unwrap_or_default();
        self.0.push(sort);
        self.0.extend_from_slice(&step.up.to_le_bytes());
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(&step.seen.inode.to_le_bytes());
        self.0.extend_from_slice(&step.seen.changed.to_le_bytes());
        self.0.extend_from_slice(name);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Step<'_>> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (step, after) = take(rest)?;
            rest = after;
            Some(step)
        })
    }

    /// Of the files alone.
    pub(crate) fn files(&self) -> impl Iterator<Item = Seen> {
        let files = self.iter().filter(|step| step.sort == Sort::File);
        files.map(|step| step.seen)
    }
}

fn take(bytes: &[u8]) -> Option<(Step<'_>, &[u8])> {
    let (sort, bytes) = bytes.split_first()?;
    let (up, bytes) = bytes.split_first_chunk()?;
    let (length, bytes) = bytes.split_first_chunk()?;
    let (inode, bytes) = bytes.split_first_chunk()?;
    let (changed, bytes) = bytes.split_first_chunk()?;
    let (name, bytes) = bytes.split_at_checked(u16::from_le_bytes(*length).into())?;
    let step = Step {
        sort: match sort {
            0 => Sort::Directory,
            1 => Sort::File,
            2 => Sort::Other,
            _ => return None,
        },
        up: u32::from_le_bytes(*up),
        name,
        seen: Seen {
            inode: u64::from_le_bytes(*inode),
            changed: i128::from_le_bytes(*changed),
        },
    };
    Some((step, bytes))
}

/// One walk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Walked {
    /// Device and inode of the root.
    pub(crate) root: (u64, u64),
    /// What changed later than this may differ from what was seen, if times are
    /// in whole seconds.
    certain_until: i128,
    /// Those that held for the walk; all nought if only files were seen, without
    /// their names.
    bounds: [u64; 4],
    pub(crate) steps: Steps,
}

impl Walked {
    /// A walk of `tree` that sees what changed until now less the doubt.
    pub(crate) fn begin(tree: BorrowedFd<'_>, limits: &Limits) -> io::Result<Self> {
        let certain_until = now() - DOUBT;
        Ok(Self {
            root: identity(tree)?,
            certain_until,
            bounds: bounds(limits),
            steps: Steps::default(),
        })
    }

    /// What was made in `tree` by this process alone, until now. Waits until
    /// the file system's clock has gone on, a few milliseconds: a change from
    /// here on has a later time.
    pub(crate) fn made(tree: BorrowedFd<'_>, files: &[Seen]) -> io::Result<Self> {
        let mut steps = Steps::default();
        for seen in files {
            steps.push(Step {
                sort: Sort::File,
                up: 0,
                name: b"",
                seen: *seen,
            });
        }
        let mut walked = Self {
            root: identity(tree)?,
            certain_until: files.iter().map(|seen| seen.changed).max().unwrap_or(0),
            bounds: [0; 4],
            steps,
        };
        let begun = std::time::Instant::now();
        while now() <= walked.certain_until {
            if begun.elapsed() > std::time::Duration::from_secs(1) {
                // The clock was set back: rather read all than trust it.
                walked.certain_until = i128::MIN;
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(walked)
    }

    /// Whether a later change would have another time.
    pub(crate) fn is_certain(&self, seen: Seen) -> bool {
        let until = match seen.changed % 1_000_000 {
            0 => self.certain_until,
            _ => self.certain_until.saturating_add(DOUBT - TICKS),
        };
        seen.changed <= until
    }

    pub(crate) fn is_of(&self, tree: BorrowedFd<'_>) -> bool {
        identity(tree).is_ok_and(|root| root == self.root)
    }

    /// Whether it has every entry, and none that `limits` would refuse.
    pub(crate) fn is_whole(&self, limits: &Limits) -> bool {
        self.bounds == bounds(limits)
    }

    /// Replaces the file at `place`; `draft` is on the same file system.
    pub(crate) fn write(&self, draft: &Path, place: &Path) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&boot()?);
        bytes.extend_from_slice(&self.root.0.to_le_bytes());
        bytes.extend_from_slice(&self.root.1.to_le_bytes());
        bytes.extend_from_slice(&self.certain_until.to_le_bytes());
        for bound in self.bounds {
            bytes.extend_from_slice(&bound.to_le_bytes());
        }
        let mut digest = blake3::Hasher::new();
        let mut file = File::create(draft)?;
        for part in [&bytes, &self.steps.0] {
            digest.update(part);
            file.write_all(part)?;
        }
        file.write_all(digest.finalize().as_bytes())?;
        drop(file);
        fs::rename(draft, place)
    }

    /// `None` if there is none, none that is whole, or none of this boot. A walk
    /// of `most` entries is not longer than what is read.
    pub(crate) fn read(place: &Path, most: u64) -> Option<Self> {
        let mut bytes = Vec::new();
        let limit = most.saturating_add(2).saturating_mul(STEP + 255);
        File::open(place)
            .ok()?
            .take(limit.saturating_add(256))
            .read_to_end(&mut bytes)
            .ok()?;
        let length = bytes.len().checked_sub(32)?;
        let digest = blake3::Hash::from_slice(bytes.get(length..)?).ok()?;
        bytes.truncate(length);
        if blake3::hash(&bytes) != digest {
            return None;
        }
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (at, rest) = rest.split_first_chunk::<36>()?;
        let (device, rest) = rest.split_first_chunk()?;
        let (inode, rest) = rest.split_first_chunk()?;
        let (until, rest) = rest.split_first_chunk()?;
        let (bounds, rest) = rest.split_first_chunk::<32>()?;
        if magic != MAGIC || *at != boot().ok()? {
            return None;
        }
        let (bounds, _) = bounds.as_chunks();
        let mut walked = Self {
            root: (u64::from_le_bytes(*device), u64::from_le_bytes(*inode)),
            certain_until: i128::from_le_bytes(*until),
            bounds: [0; 4],
            steps: Steps::default(),
        };
        for (to, from) in walked.bounds.iter_mut().zip(bounds) {
            *to = u64::from_le_bytes(*from);
        }
        let header = bytes.len() - rest.len();
        bytes.drain(..header);
        walked.steps = Steps(bytes);
        Some(walked)
    }
}

fn bounds(limits: &Limits) -> [u64; 4] {
    [
        limits.entries,
        limits.path_bytes,
        limits.entry_bytes,
        limits.unpacked_bytes,
    ]
}

/// What tells this boot of the machine from others.
fn boot() -> io::Result<[u8; 36]> {
    let mut id = [0; 36];
    File::open("/proc/sys/kernel/random/boot_id")?.read_exact(&mut id)?;
    Ok(id)
}

fn identity(tree: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let stat = fstat(tree.as_fd())?;
    Ok((stat.st_dev, stat.st_ino))
}

/// The clock that file systems take their times from.
fn now() -> i128 {
    let Timespec { tv_sec, tv_nsec } = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
    nanos(tv_sec, tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Walked {
        /// As if the last change was longer ago than any doubt.
        pub(crate) fn believe_all(&mut self) {
            self.certain_until = i128::MAX;
        }
    }

    #[test]
    fn a_time_is_believed_if_a_later_change_has_another() {
        let walked = Walked {
            root: (1, 1),
            certain_until: 100_000_000_000 - DOUBT,
            bounds: [0; 4],
            steps: Steps::default(),
        };
        let is_certain = |changed| walked.is_certain(Seen { inode: 1, changed });
        // In whole seconds and milliseconds, and finer.
        assert!(is_certain(98_000_000_000));
        assert!(!is_certain(99_000_000_000));
        assert!(!is_certain(99_500_000_000));
        assert!(is_certain(99_500_000_001));
        assert!(is_certain(99_979_999_999));
        assert!(!is_certain(99_980_000_001));
        assert!(!is_certain(100_000_000_001));
        assert!(!is_certain(101_000_000_000));
    }

    #[test]
    fn the_clock_was_set_back_so_nothing_is_believed() {
        let walked = Walked {
            root: (1, 1),
            certain_until: i128::MIN,
            bounds: [0; 4],
            steps: Steps::default(),
        };
        let seen = |changed| Seen { inode: 1, changed };
        assert!(!walked.is_certain(seen(0)));
        assert!(!walked.is_certain(seen(1)));
    }
}
