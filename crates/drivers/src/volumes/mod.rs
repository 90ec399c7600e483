//! The disks of sandboxes.

mod blanks;
mod confined;
mod directory;
mod state;
mod store;
mod tree;

pub use directory::DirectoryVolumes;
pub use store::{Volume, VolumeError, VolumeState, VolumeStore};
