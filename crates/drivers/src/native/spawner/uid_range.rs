//! Ranges of host ids, one for each boot of any data directory of the machine.
//!
//! The table is machine-wide, in `/run/hutch`, and changed under a lock. A
//! line is the record of intent: it is written before anything with those ids
//! is made and removed after everything is gone.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::step::Step;
use crate::native::process;

/// How many ids a range has.
pub const SIZE: u32 = 65_536;
/// The first id of the first range: above what distributions give to people
/// and what systemd gives to its containers.
const FIRST: u32 = 0x7000_0000;
/// How many ranges there are.
const COUNT: u32 = 4_095;
const PLACE: &str = "/run/hutch";

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    index: u32,
    data_dir: String,
    spawner: u32,
    started: u64,
}

/// A range that is this spawner's until it is given back.
#[derive(Debug)]
pub struct UidRange {
    index: u32,
    data_dir: String,
}

impl UidRange {
    /// Takes a free range. Ranges of spawners that are gone are not free until
    /// their data directory's next spawner has reclaimed what used them, or
    /// `is_used` says that nothing does.
    pub fn take(data_dir: &str, is_used: impl Fn(&str) -> bool) -> io::Result<Self> {
        let pid = std::process::id();
        let started = process::start_time(pid)?;
        let mut table = Table::lock()?;
        let mut entries = table.read()?;
        // Many lines name one spawner; each is looked up once, or starts
        // would become slower with every sandbox that runs.
        let mut lives = BTreeMap::new();
        entries.retain(|entry| {
            *lives
                .entry((entry.spawner, entry.started, entry.data_dir.clone()))
                .or_insert_with(|| {
                    let at = process::start_time(entry.spawner);
                    at.is_ok_and(|at| at == entry.started) || is_used(&entry.data_dir)
                })
        });
        let mut taken = vec![false; COUNT as usize];
        for entry in &entries {
            if let Some(slot) = taken.get_mut(entry.index as usize) {
                *slot = true;
            }
        }
        let index = taken
            .iter()
            .position(|taken| !taken)
            .and_then(|index| u32::try_from(index).ok())
            .ok_or_else(|| io::Error::other("all ranges of host ids are in use"))?;
        entries.push(Entry {
            index,
            data_dir: data_dir.to_owned(),
            spawner: pid,
            started,
        });
        table.write(&entries)?;
        Ok(Self {
            index,
            data_dir: data_dir.to_owned(),
        })
    }

    /// Takes a range over from a spawner that is gone.
    pub fn retake(index: u32, data_dir: &str) -> io::Result<Self> {
        let pid = std::process::id();
        let started = process::start_time(pid)?;
        let mut table = Table::lock()?;
        let mut entries = table.read()?;
        if let Some(other) = entries
            .iter()
            .find(|entry| entry.index == index && entry.data_dir != data_dir)
        {
            return Err(io::Error::other(format!(
                "range {index} of host ids belongs to data directory {}",
                other.data_dir
            )));
        }
        entries.retain(|entry| entry.index != index);
        entries.push(Entry {
            index,
            data_dir: data_dir.to_owned(),
            spawner: pid,
            started,
        });
        table.write(&entries)?;
        Ok(Self::resume(index, data_dir))
    }

    /// A range that this process has already.
    pub fn resume(index: u32, data_dir: &str) -> Self {
        Self {
            index,
            data_dir: data_dir.to_owned(),
        }
    }

    /// Which one it is.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The first id of the range.
    pub fn base(&self) -> u32 {
        FIRST + self.index * SIZE
    }
}

impl Drop for UidRange {
    fn drop(&mut self) {
        let gone = |entry: &Entry| entry.index == self.index && entry.data_dir == self.data_dir;
        let _ = forget(gone);
    }
}

/// Gives back every range of a data directory but the ones that are `kept`,
/// after nothing uses them.
pub fn free_others(data_dir: &str, kept: &[u32]) -> io::Result<()> {
    forget(|entry| entry.data_dir == data_dir && !kept.contains(&entry.index))
}

fn forget(gone: impl Fn(&Entry) -> bool) -> io::Result<()> {
    let mut table = Table::lock()?;
    let mut entries = table.read()?;
    entries.retain(|entry| !gone(entry));
    table.write(&entries)
}

/// The table, locked until dropped.
struct Table(File);

impl Table {
    fn lock() -> io::Result<Self> {
        let place = Path::new(PLACE);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(place)
            .step(PLACE)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(place.join("uid-ranges"))
            .step("open /run/hutch/uid-ranges")?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self(file))
    }

    fn read(&mut self) -> io::Result<Vec<Entry>> {
        let mut text = String::new();
        self.0.rewind()?;
        self.0.read_to_string(&mut text)?;
        // A line that cannot be read was cut by a crash and is dropped.
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    }

    fn write(&mut self, entries: &[Entry]) -> io::Result<()> {
        let mut text = String::new();
        for entry in entries {
            text.push_str(&serde_json::to_string(entry)?);
            text.push('\n');
        }
        self.0.rewind()?;
        self.0.write_all(text.as_bytes())?;
        self.0.set_len(text.len() as u64)
    }
}
