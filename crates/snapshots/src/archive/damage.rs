//! Telling damage in a stored part from trouble while reading it.

use std::io;

use crate::{Part, SnapshotError, SnapshotId};
use hutch_pax::PaxError;

/// Makes errors about one part of one snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Damage {
    pub(crate) id: SnapshotId,
    pub(crate) which: Part,
}

impl Damage {
    pub(crate) fn is(self, reason: impl Into<String>) -> SnapshotError {
        SnapshotError::Corrupt {
            id: self.id,
            which: self.which,
            reason: reason.into(),
        }
    }

    /// An error with a number comes from the disk, any other from decoding.
    pub(crate) fn io(self, error: io::Error) -> SnapshotError {
        if error.raw_os_error().is_some() {
            return SnapshotError::io(format!("reading the {}", self.which), error);
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.is("ends too early"),
            _ => self.is(format!("does not decode ({error})")),
        }
    }

    pub(crate) fn pax(self, error: PaxError) -> SnapshotError {
        match error {
            PaxError::Malformed(reason) => self.is(reason),
            PaxError::Limit { which, limit } => SnapshotError::limit(which.into(), limit),
            PaxError::Io(error) => self.io(error),
        }
    }
}
