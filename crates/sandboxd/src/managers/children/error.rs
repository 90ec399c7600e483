//! Why a process could not be started.

use crate::start::Stage;
use rustix::io::Errno;
use std::time::Duration;

/// How long the starter may take to answer. It answers in about a millisecond; only a
/// sandbox whose processes leave it no CPU or memory holds it up.
pub(super) const START_LIMIT: Duration = Duration::from_secs(30);

/// A process could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The starter tried and failed.
    #[error("{stage:?} failed: {errno}")]
    Failed {
        /// Where.
        stage: Stage,
        /// Why.
        errno: Errno,
    },
    /// The starter did not answer in time.
    #[error("the process that starts commands did not answer within {}s", START_LIMIT.as_secs())]
    Unavailable,
    /// The starter was killed while it was at this start.
    #[error("the process that starts commands was killed meanwhile")]
    Killed,
    /// The starter was killed when it had taken the request and not begun with it.
    #[error("the process that starts commands was killed before")]
    NotBegun,
    /// Starters are killed as soon as they are there.
    #[error("the process that starts commands is killed again and again")]
    KilledOften,
    /// The request could not be handed over.
    #[error("the start request could not be sent: {0}")]
    Send(Errno),
}
