//! What a spawner tells the program that it becomes, in a file in memory.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use hutch_protocol::Generation;
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};

use super::record::{Record, refuse_newer};
use crate::{CpuLimit, StartSpec};

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;
/// The largest state, in bytes: far above 2,048 boots.
const MAX: u64 = 16 * 1024 * 1024;

/// The whole of it. Numbers of descriptors are those of the store.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    /// [`VERSION`].
    pub v: u32,
    /// The data directory's id.
    pub data_dir: String,
    /// The newest generation that was obeyed.
    pub generation: Generation,
    /// The daemon's binary for the next boots.
    pub sandboxd: PathBuf,
    /// How many boots are prepared ahead.
    pub parked: usize,
    /// Whether CPU is capped.
    #[serde(default)]
    pub cpu: CpuLimit,
    /// Where the names of boots go on.
    pub next_slot: u64,
    /// Starts that wait, with the ids of their requests.
    pub queue: Vec<(u64, StartSpec)>,
    /// The lock of the data directory.
    pub lock: i32,
    /// The socket that servers connect to.
    pub listener: i32,
    /// The server that is obeyed, if one is connected.
    pub server: Option<i32>,
    /// The boots that run.
    pub boots: Vec<Kept>,
}

/// One running boot.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    /// What is on disk of it, too.
    pub record: Record,
    /// PID 1's pidfd.
    pub pidfd: i32,
    /// Its network namespace.
    pub netns: i32,
    /// The pipe that its daemon writes to, unless it was closed.
    pub output: Option<i32>,
    /// Whether PID 1 is a child of this process.
    pub is_child: bool,
}

#[derive(Deserialize)]
struct Head {
    v: u32,
}

impl State {
    /// Writes it to memory that is read from the start.
    pub fn write(&self) -> io::Result<OwnedFd> {
        let memory = rustix::fs::memfd_create("hutch-spawner-state", MemfdFlags::CLOEXEC)?;
        let mut file = File::from(memory);
        file.write_all(&serde_json::to_vec(self)?)?;
        file.rewind()?;
        Ok(file.into())
    }

    /// Reads it.
    ///
    /// # Errors
    /// A newer hutch wrote it, or it is none.
    pub fn read(memory: OwnedFd) -> io::Result<Self> {
        let mut file = File::from(memory);
        file.rewind()?;
        let mut text = Vec::new();
        file.take(MAX).read_to_end(&mut text)?;
        let head: Head = serde_json::from_slice(&text)?;
        refuse_newer(head.v, VERSION, "the spawner's state")?;
        Ok(serde_json::from_slice(&text)?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn memory(text: &str) -> OwnedFd {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.into()
    }

    #[test]
    fn a_state_comes_back_and_a_newer_one_is_refused() {
        let state = State {
            v: VERSION,
            data_dir: "0".repeat(16),
            generation: Generation(3),
            sandboxd: "/sandboxd".into(),
            parked: 2,
            cpu: CpuLimit::Capped,
            next_slot: 7,
            queue: Vec::new(),
            lock: 3,
            listener: 4,
            server: None,
            boots: Vec::new(),
        };
        let back = State::read(state.write().unwrap()).unwrap();
        assert_eq!((back.next_slot, back.generation), (7, Generation(3)));
        let newer = State::read(memory(r#"{"v":2,"anything":"else"}"#));
        let words = newer.unwrap_err().to_string();
        assert!(words.contains("version 2") && words.contains("nothing was changed"));
        assert!(State::read(memory("no state")).is_err());
    }
}
