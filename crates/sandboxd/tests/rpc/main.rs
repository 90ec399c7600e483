//! The real binary as PID 1 of a pid namespace of its own, over RPC.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod archives;
mod commands;
mod control;
mod files;
mod pid1;
mod processes;
mod sandbox;
mod spawn;
