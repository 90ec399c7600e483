//! Children of PID 1: starting them through the starter, learning how they
//! ended, and ending everything that one of them started.

mod client;
mod exit;
mod guard;
mod reaper;
mod tree;

pub use client::{Children, ChildrenSettings, StartError, Stdio};
pub use exit::{Exit, signal_number};
pub use guard::Child;
pub use reaper::Scope;
pub use tree::{StillRunning, Tree};

#[cfg(test)]
mod tests;
