//! Each promise to users, once, through the product's own surface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(
    clippy::cloned_ref_to_slice_refs,
    reason = "an argument list reads the same with one element or two"
)]

mod activity;
mod attacks;
mod clients;
mod connections;
mod crash;
mod disturbance;
mod door;
mod exec;
mod failpoints;
mod files;
mod hostile;
mod isolation;
mod keeping;
mod keys;
mod lifecycle;
mod observability;
mod processes;
mod refusals;
mod rpc;
mod snapshots;
mod streams;
mod takeover;
