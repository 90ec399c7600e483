//! What holds state: children of PID 1, the environment of commands, and the
//! records of background processes.

pub mod children;
pub mod environment;
pub mod process_table;
