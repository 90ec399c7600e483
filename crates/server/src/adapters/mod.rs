//! The domain's ports, on the real things.

mod journal;
mod machine;
mod sweep;
mod workspace;

pub(crate) use journal::StreamJournal;
pub(crate) use machine::DriverMachines;
pub(crate) use workspace::LocalWorkspaces;
