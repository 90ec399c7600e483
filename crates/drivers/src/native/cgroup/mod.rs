//! Control groups: limits by the v1 controllers, kill and freeze by v2.
//!
//! Each boot has a group `hutch-<data directory's id>/<slot>` in every
//! hierarchy, with the halves `daemon` (PID 1) and `commands` (everything
//! else). The whole has the limits of the instance type, `commands` a little
//! less, so that commands cannot take the daemon's room.

mod file;
mod hierarchies;
mod limits;
mod slot;
mod v1;
mod v2;

pub use hierarchies::Hierarchies;
pub use limits::{Limits, PERIOD};
pub use slot::{SlotGroups, reclaim};
