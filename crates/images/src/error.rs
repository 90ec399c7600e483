//! What preparing an image can fail with.

use std::io;
use std::path::{Path, PathBuf};

/// A step of preparing an image failed.
#[derive(Debug, thiserror::Error)]
#[error("image host: {step} {}: {cause}", path.display())]
pub struct ImageError {
    /// What was being done.
    pub step: &'static str,
    /// To which file or directory.
    pub path: PathBuf,
    /// What the system said.
    pub cause: io::Error,
}

impl ImageError {
    /// For `map_err`: the failed step and its object.
    pub fn at(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |cause| Self { step, path, cause }
    }
}
