//! What a driver can fail with.

use std::io;

use hutch_protocol::{ApiError, ErrorCode};

/// Why a driver could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The driver cannot run sandboxes on this machine as things are.
    #[error("{0}")]
    Unavailable(String),
    /// The machine has no room for one more boot.
    #[error("{0}")]
    Capacity(String),
    /// A newer server owns the data directory's sandboxes.
    #[error("a newer server owns the sandboxes of this data directory ({0}): stop this one")]
    Superseded(String),
    /// The spawner that holds the sandboxes is of another release.
    #[error(
        "another release of hutch started the sandboxes of this data directory ({0}): let it stop them first"
    )]
    Version(String),
    /// A step on the host failed.
    #[error("{step}: {cause}")]
    Step {
        /// What was being done, to which object.
        step: String,
        /// What the system said.
        cause: io::Error,
    },
    /// A step did not end in time.
    #[error("{0} did not end in time")]
    Deadline(String),
    /// The boot is gone.
    #[error("the sandbox does not run any more")]
    Gone,
}

impl DriverError {
    /// A failed step, for `map_err`.
    pub fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let step = step.into();
        move |cause| Self::Step { step, cause }
    }
}

impl From<DriverError> for ApiError {
    fn from(error: DriverError) -> Self {
        let code = match error {
            DriverError::Capacity(_) => ErrorCode::CapacityExceeded,
            _ => ErrorCode::DriverUnavailable,
        };
        Self::new(code, error.to_string())
    }
}
