//! What both sides of hutch speak: ids, paths, validation, event types, error
//! codes and the shapes of the sandbox API.
//!
//! No I/O happens here. Every other crate may use this one; it uses none of
//! ours.
#![forbid(unsafe_code)]

pub mod create;
pub mod env;
pub mod error;
pub mod error_code;
pub mod event;
pub mod exec;
pub mod file;
pub mod id;
pub mod instance_type;
pub mod limits;
pub mod live;
pub mod path;
pub mod process;
pub mod project;
pub mod projection;
pub mod sleep_after;
pub mod timestamp;

pub use create::CreateInput;
pub use env::{EnvMap, EnvPatch};
pub use error::ApiError;
pub use error_code::ErrorCode;
pub use id::{BackupId, BootId, Generation, ProjectId};
pub use instance_type::InstanceType;
pub use live::{LiveMessage, Patch};
pub use path::{SandboxName, SandboxPath, StreamPath};
pub use project::ProjectSlug;
pub use projection::{Projection, Status};
pub use sleep_after::SleepAfter;
pub use timestamp::Timestamp;
