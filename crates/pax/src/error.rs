//! Why an archive was not read or written.

use std::io;

use crate::LimitKind;

/// Why an archive was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum PaxError {
    /// The bytes are no archive of the kind read here.
    #[error("{0}")]
    Malformed(&'static str),
    /// A limit was met.
    #[error("has more than {limit} {which}")]
    Limit {
        /// The limit.
        which: LimitKind,
        /// Its value.
        limit: u64,
    },
    /// The stream failed; its end within a member is `UnexpectedEof`.
    #[error(transparent)]
    Io(#[from] io::Error),
}
