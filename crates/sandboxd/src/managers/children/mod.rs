//! Children of PID 1: starting them through the starter, learning how they
//! ended, and ending everything that one of them started.

mod client;
mod error;
mod exit;
mod guard;
mod reaper;
mod revival;
mod tree;

pub use client::{Children, ChildrenSettings, Stdio};
pub use error::StartError;
pub use exit::{Exit, signal_number};
pub use guard::Child;
pub use reaper::Scope;
pub use tree::{StillRunning, Tree};

#[cfg(test)]
mod tests;
