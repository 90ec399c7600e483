//! Records of background processes, and what they wrote.

mod log;
mod record;
mod table;

pub use log::{Cursor, Log, Piece, Source};
pub use record::{ProcessState, Record};
pub use table::{ProcessTable, TableError};
