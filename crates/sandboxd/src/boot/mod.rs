//! From the first instruction of PID 1 to serving.

mod daemon;
mod inheritance;
mod log;

pub use daemon::run;
pub use inheritance::{Inheritance, InheritanceError};
