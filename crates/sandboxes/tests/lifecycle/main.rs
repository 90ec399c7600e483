//! The life of a sandbox against ports that fail on demand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod birth;
mod end;
mod idle;
mod limits;
mod live;
mod recovery;
mod sleep;
mod wake;
mod world;
