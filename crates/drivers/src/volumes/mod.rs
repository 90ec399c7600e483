//! The disks of sandboxes.

mod directory;
mod store;

pub use directory::DirectoryVolumes;
pub use store::{Volume, VolumeError, VolumeState, VolumeStore};
