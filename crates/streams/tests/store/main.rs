//! The store as its callers see it, on a real file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod append;
mod births;
mod crash;
mod fixture;
mod lifecycle;
mod limits;
mod live;
mod migration;
mod model;
mod read;
mod records;
