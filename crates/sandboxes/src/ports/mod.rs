//! What the domain needs of the world, as traits that the server implements.

mod journal;
mod machine;
mod workspace;

pub use journal::{BirthOutcome, Journal, JournalError};
pub use machine::{Exit, Machine, MachineError, MachineLog, MachineSpec, Machines, Usage};
pub use workspace::{Prepared, Source, WorkspaceError, Workspaces};
