//! The server: HTTP surfaces and composition. It owns no business rule.
//!
//! [`Server::start`] opens the data directory, takes over the sandboxes that an
//! earlier server left running, and serves `/api`.
#![forbid(unsafe_code)]

mod adapters;
mod data_dir;
mod error;
#[cfg(test)]
mod hostile;
mod housekeeping;
mod http;
mod keys;
mod options;
mod projects;
mod rpc;
mod server;

pub use data_dir::KEY_FILE;
pub use error::ServeError;
pub use options::Options;
pub use server::Server;
