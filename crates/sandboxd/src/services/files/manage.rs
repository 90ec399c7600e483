//! Directories, removal, renaming, existence.

use super::Files;
use super::failure::{failure, typed};
use super::moving::move_entry;
use super::path::Location;
use hutch_protocol::{ApiError, ErrorCode};
use std::io;

impl Files {
    /// Makes a directory; with `recursive` also its parents, and an existing one is fine.
    ///
    /// # Errors
    /// `FILE_EXISTS`, `FILE_NOT_FOUND` for a missing parent, and what else the kernel says.
    pub async fn make_directory(&self, path: &str, recursive: bool) -> Result<(), ApiError> {
        self.blocking("directory.create", path, move |location| {
            let made = if recursive {
                std::fs::create_dir_all(&location.path)
            } else {
                std::fs::create_dir(&location.path)
            };
            made.map_err(|error| failure(location.operation, &location.shown, &error))
        })
        .await
    }

    /// Removes a file or link.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND`; `IS_DIRECTORY` for a directory.
    pub async fn delete(&self, path: &str) -> Result<(), ApiError> {
        self.blocking("file.delete", path, |location| {
            let fail = |error| failure(location.operation, &location.shown, &error);
            if std::fs::symlink_metadata(&location.path).map_err(fail)?.is_dir() {
                return Err(typed(
                    ErrorCode::IsDirectory,
                    location.operation,
                    &location.shown,
                    format!(
                        "Cannot delete directory with deleteFile() at '{}'. Use exec('rm -rf …') for directories",
                        location.shown
                    ),
                ));
            }
            std::fs::remove_file(&location.path).map_err(fail)
        })
        .await
    }

    /// Renames or moves an entry, into `to` when that is a directory, across file systems when
    /// it must.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND` for a missing source, and what else the kernel says.
    pub async fn rename(
        &self,
        operation: &'static str,
        from: &str,
        to: &str,
    ) -> Result<(), ApiError> {
        let target = Location::parse(to, &self.workspace, operation)?;
        self.blocking(operation, from, move |source| {
            if let Err(error) = std::fs::symlink_metadata(&source.path) {
                if error.kind() == io::ErrorKind::NotFound {
                    let message = format!("Source file not found: {}", source.shown);
                    return Err(typed(
                        ErrorCode::FileNotFound,
                        operation,
                        &source.shown,
                        message,
                    ));
                }
                return Err(failure(operation, &source.shown, &error));
            }
            move_entry(&source.path, &target.path).map_err(|error| {
                failure(operation, &target.shown, &error).with("source", source.shown.clone())
            })
        })
        .await
    }

    /// Whether there is something at a path, links followed.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` and the like, when that cannot be known.
    pub async fn exists(&self, path: &str) -> Result<bool, ApiError> {
        self.blocking("file.stat", path, |location| {
            match std::fs::metadata(&location.path) {
                Ok(_) => Ok(true),
                Err(error) => match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(false),
                    _ => Err(failure(location.operation, &location.shown, &error)),
                },
            }
        })
        .await
    }
}
