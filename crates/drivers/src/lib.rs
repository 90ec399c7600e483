//! Where a sandbox runs: the driver traits and the native Linux driver.
//!
//! A driver turns a [`StartSpec`] into a running [`Instance`] and knows which
//! instances run already. It knows nothing of records, events or snapshots.
//! Unsafe code is confined to `native/spawner/`.
#![deny(unsafe_code)]

pub mod boot_log;
pub mod capabilities;
pub mod driver;
pub mod error;
pub mod identity;
pub mod instance;
pub mod native;
pub mod spec;
pub mod unavailable;
pub mod volumes;

pub use boot_log::{BootLog, LogTail};
pub use capabilities::{Capabilities, Capability, Support};
pub use driver::{BoxFuture, Driver};
pub use error::DriverError;
pub use identity::BootIdentity;
pub use instance::{Exit, Instance, Port, Usage};
pub use native::{NativeDriver, NativeOptions};
pub use spec::{CpuLimit, SandboxKey, StartSpec};
pub use unavailable::UnavailableDriver;
pub use volumes::{DirectoryVolumes, Volume, VolumeError, VolumeState, VolumeStore};
