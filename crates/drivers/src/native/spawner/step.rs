//! Failures named by the step that failed.

use std::io;

/// Names the step in an error.
pub trait Step<T> {
    /// The same result, its error prefixed with `step`.
    fn step(self, step: &str) -> io::Result<T>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: &str) -> io::Result<T> {
        self.map_err(|cause| {
            let cause = cause.into();
            io::Error::new(cause.kind(), format!("{step}: {cause}"))
        })
    }
}
