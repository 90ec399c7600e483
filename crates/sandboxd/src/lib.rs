//! The in-sandbox daemon: PID 1 of every sandbox.
#![deny(unsafe_code)]

pub mod managers;
pub mod start;
