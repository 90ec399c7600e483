//! Starting processes: a single-threaded *starter*, forked before PID 1 has any
//! thread, clones every command into a group of its own.
//!
//! The starter exists because attaching a new process to the memory and pids
//! groups costs about 11 ms: the starter is attached once, at boot, and what it
//! clones inherits its place. It clones with `CLONE_PARENT`, so each command is
//! a child of PID 1 and one place reaps. Code in the sandbox can kill the starter, as anybody
//! can whom PID 1 starts; PID 1 then forks another.
//!
//! This is the crate's only module with unsafe code.
#![allow(unsafe_code)]

mod channel;
mod clone;
mod command;
mod inherited;
mod launch;
mod report;
mod slice;
mod starter;

pub use channel::{Channel, memory_file};
pub use inherited::{adopt, ensure_standard_descriptors};
pub use launch::{Launch, Outcome, Stage};
pub use starter::{Cradle, Starter, StarterSettings};
