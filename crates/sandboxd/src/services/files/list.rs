//! Listing directories.

use super::Files;
use super::failure::{failure, typed};
use super::path::Location;
use hutch_protocol::file::{FileInfo, FileKind, Permissions};
use hutch_protocol::{ApiError, ErrorCode, Timestamp};
use std::fs::{DirEntry, Metadata};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The most entries of one answer.
const ENTRIES_MAX: usize = 50_000;
const OPERATION: &str = "directory.list";

/// What to list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Directories below, too.
    pub recursive: bool,
    /// Entries whose own name starts with a dot, too.
    pub include_hidden: bool,
}

impl Files {
    /// Lists a directory, each by name, a directory before what is in it. Links are not followed.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND`, `NOT_DIRECTORY`, `PERMISSION_DENIED`, `TOO_MANY_FILES` past 50,000 entries.
    pub async fn list(&self, path: &str, options: ListOptions) -> Result<Vec<FileInfo>, ApiError> {
        self.blocking(OPERATION, path, move |location| {
            let mut found = Vec::new();
            // Without the `.` parts, so that entries read as one would write them.
            let root: PathBuf = location.path.components().collect();
            match walk(&root, &root, options, &mut found) {
                Ok(()) if found.len() > ENTRIES_MAX => Err(too_many(location)),
                Ok(()) => Ok(found),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(typed(
                    ErrorCode::FileNotFound,
                    OPERATION,
                    &location.shown,
                    format!("Directory not found: {}", location.shown),
                )),
                Err(error) => Err(failure(OPERATION, &location.shown, &error)),
            }
        })
        .await
    }
}

fn too_many(location: &Location) -> ApiError {
    typed(
        ErrorCode::TooManyFiles,
        OPERATION,
        &location.shown,
        format!(
            "{} holds more than {ENTRIES_MAX} entries; list its directories one by one",
            location.shown
        ),
    )
    .with("limit", ENTRIES_MAX)
}

fn walk(
    root: &Path,
    directory: &Path,
    options: ListOptions,
    found: &mut Vec<FileInfo>,
) -> io::Result<()> {
    let mut entries: Vec<DirEntry> = std::fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(DirEntry::file_name);
    for entry in entries {
        if found.len() > ENTRIES_MAX {
            return Ok(());
        }
        let path = entry.path();
        // Gone meanwhile: as if it had never been there.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if options.include_hidden || !hidden {
            found.push(info(root, &path, &metadata));
        }
        if options.recursive && metadata.is_dir() {
            match walk(root, &path, options, found) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
    }
    Ok(())
}

fn info(root: &Path, path: &Path, metadata: &Metadata) -> FileInfo {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let bits = metadata.permissions().mode();
    let kind = metadata.file_type();
    FileInfo {
        name: path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        absolute_path: text(path),
        relative_path: text(path.strip_prefix(root).unwrap_or(path)),
        r#type: if kind.is_file() {
            FileKind::File
        } else if kind.is_dir() {
            FileKind::Directory
        } else if kind.is_symlink() {
            FileKind::Symlink
        } else {
            FileKind::Other
        },
        size: metadata.len(),
        modified_at: String::from(modified(metadata)),
        mode: mode(bits),
        permissions: Permissions {
            readable: bits & 0o400 != 0,
            writable: bits & 0o200 != 0,
            executable: bits & 0o100 != 0,
        },
    }
}

fn modified(metadata: &Metadata) -> Timestamp {
    let since = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Timestamp::from_millis(
        since
            .and_then(|since| i64::try_from(since.as_millis()).ok())
            .unwrap_or(0),
    )
}

fn mode(bits: u32) -> String {
    (0..9)
        .map(|place| {
            let letter = ['r', 'w', 'x'][place % 3];
            if bits & (0o400 >> place) == 0 {
                '-'
            } else {
                letter
            }
        })
        .collect()
}
