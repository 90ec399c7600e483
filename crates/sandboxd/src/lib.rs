//! The in-sandbox daemon: PID 1 of every sandbox, which runs commands, keeps
//! background processes and moves files for the server outside.
//!
//! The control plane (RPC over two inherited sockets) calls services, services
//! use managers. Nothing in here is trusted by the host.
#![deny(unsafe_code)]

pub mod boot;
pub mod control_plane;
pub mod managers;
pub mod services;
pub mod start;
