//! The whole product under test: the real binaries, on a data directory of
//! their own, spoken to as clients do.
//!
//! Needs root, since sandboxes do, and the binaries of the same build.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod api;
mod leftovers;
mod process;
mod server;
mod wire;

pub use api::{Api, Handle, message, string};
pub use leftovers::{left_over, spawner_of};
pub use process::{children_of, open_files, peak_kib, resident_kib, sandboxd_of, wait_until};
pub use server::{Hutch, binaries};
pub use wire::{TEXT, Wire};
