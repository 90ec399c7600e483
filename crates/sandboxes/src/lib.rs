//! The domain: what a sandbox is, who may have its name, and how it lives.
//!
//! Everything outside is reached through the small traits of [`ports`]. One
//! actor per sandbox owns its record, its machine, its idle timer and the
//! appends to its stream, so that no two steps of its life race.
#![forbid(unsafe_code)]

mod actor;
mod admission;
mod claim;
pub mod describe;
mod gate;
mod idle;
mod live;
pub mod metrics;
pub mod ports;
pub mod record;
mod recovery;
mod registry;
mod sandbox;
mod settings;
mod slots;

pub use admission::{Admission, Binding, Weight};
pub use live::LiveState;
pub use metrics::Metrics;
pub use record::{BackupHandle, SandboxKey, SandboxRecord};
pub use registry::{ListedSandbox, Sandboxes};
pub use sandbox::{Sandbox, StartOptions};
pub use settings::Settings;
pub use slots::MaxInstances;
