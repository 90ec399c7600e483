//! What holds state: children of PID 1 and the records of background processes.

pub mod children;
