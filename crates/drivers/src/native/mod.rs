//! The native driver: Linux namespaces, made by a small spawner process.

mod build;
mod cgroup;
mod data_dir;
mod detect;
mod driver;
mod instance;
mod launch;
mod link;
mod options;
mod packet;
mod poll_fd;
mod process;
mod proof;
mod protocol;
mod socket_path;
mod spawner;

pub use driver::NativeDriver;
pub use options::NativeOptions;
pub use process::forbid_core_dumps;
pub use spawner::{shorten_slice, spawner_main};
