//! Where a sandbox's root filesystem comes from.
//!
//! Today: the image `host`, the machine's own `/usr` seen read-only, with what
//! only root may read left out and an `/etc` without the machine's identity.
#![forbid(unsafe_code)]

pub mod error;
pub mod etc;
pub mod host;
pub mod identity;
pub mod mask;
pub mod skeleton;

pub use error::ImageError;
pub use host::HostImage;
