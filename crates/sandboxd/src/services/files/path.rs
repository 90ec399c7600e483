//! Paths as callers write them.

use crate::services::commands::invalid;
use hutch_protocol::ApiError;
use std::path::{Path, PathBuf};

/// The longest path, in bytes.
const PATH_MAX: usize = 4096;

/// A path that was checked and made absolute.
#[derive(Debug, Clone)]
pub(super) struct Location {
    /// As the caller wrote it.
    pub(super) shown: String,
    /// Absolute.
    pub(super) path: PathBuf,
    /// What is being done there.
    pub(super) operation: &'static str,
}

impl Location {
    /// Checks a path; a relative one starts at the workspace.
    pub(super) fn parse(
        path: &str,
        workspace: &str,
        operation: &'static str,
    ) -> Result<Self, ApiError> {
        let why = if path.is_empty() {
            "it is empty"
        } else if path.contains('\0') {
            "it holds a NUL"
        } else if path.len() > PATH_MAX {
            "it has more than 4096 bytes"
        } else {
            return Ok(Self {
                shown: path.into(),
                path: Path::new(workspace).join(path),
                operation,
            });
        };
        let head: String = path.chars().take(200).collect();
        Err(invalid(
            "path",
            format!("Invalid path format for '{}': {why}", head.escape_default()),
        ))
    }
}
