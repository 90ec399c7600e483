//! Why a copy failed.

use hutch_pax::PaxError;
use rustix::io::Errno;
use std::io;

/// Why a copy failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The kernel refused something.
    #[error("{path}: {source}")]
    Io {
        /// What it was about.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The archive cannot be read or written.
    #[error("the archive {}", told(.0))]
    Archive(#[from] PaxError),
    /// The archive holds what no honest sender would send.
    #[error("the archive {reason}: \"{member}\"")]
    Refused {
        /// Its name in the archive.
        member: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The target is not what the source can be copied to.
    #[error("{path}: {reason}")]
    Target {
        /// The target.
        path: String,
        /// Why, and the way out.
        reason: &'static str,
        /// What kind of fault it is.
        fault: TargetFault,
    },
}

/// What is wrong with a source or target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetFault {
    /// It is not there.
    Missing,
    /// It is no directory and has to be one.
    NotDirectory,
    /// It is a directory and must not be one.
    IsDirectory,
    /// It is neither a file nor a directory, or its path names nothing.
    Unsuitable,
}

impl CopyError {
    pub(crate) fn io(path: &[u8], error: impl Into<io::Error>) -> Self {
        Self::Io {
            path: shown(path),
            source: error.into(),
        }
    }

    pub(crate) fn refused(member: &[u8], reason: &'static str) -> Self {
        Self::Refused {
            member: shown(member),
            reason,
        }
    }

    pub(crate) fn target(path: &[u8], fault: TargetFault, reason: &'static str) -> Self {
        Self::Target {
            path: shown(path),
            reason,
            fault,
        }
    }

    /// Whether something that a walk found has gone before it was read.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Io { source, .. } if Errno::from_io_error(source) == Some(Errno::NOENT))
    }
}

/// A path for a message, at most 300 bytes of it.
pub(crate) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(&path[..path.len().min(300)])
        .escape_debug()
        .to_string()
}

fn told(error: &PaxError) -> String {
    match error {
        PaxError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "ended early".to_owned()
        }
        PaxError::Io(error) => format!("cannot be passed on: {error}"),
        other => other.to_string(),
    }
}
