//! The business of the daemon, one folder a noun. Services know nothing of how
//! they are called; the control plane does.

pub mod commands;
pub mod files;
pub mod processes;

#[cfg(test)]
mod testing;
