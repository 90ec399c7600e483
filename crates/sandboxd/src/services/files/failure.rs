//! From what the kernel says to the official codes.

use hutch_protocol::{ApiError, ErrorCode};
use rustix::io::Errno;
use std::io;

/// The typed error of an operation on a path.
pub(super) fn failure(operation: &str, path: &str, error: &io::Error) -> ApiError {
    let code = code(error);
    let what = match code {
        ErrorCode::FileNotFound => "File not found".into(),
        ErrorCode::PermissionDenied => "Permission denied".into(),
        ErrorCode::FileExists => "File exists".into(),
        ErrorCode::IsDirectory => "Is a directory".into(),
        ErrorCode::NotDirectory => "Not a directory".into(),
        ErrorCode::NoSpace => "No space left on the disk of the sandbox".into(),
        ErrorCode::ReadOnly => "Read-only file system".into(),
        _ => error.to_string(),
    };
    typed(code, operation, path, format!("{what}: {path}"))
}

/// A typed error with a message of its own.
pub(super) fn typed(
    code: ErrorCode,
    operation: &str,
    path: &str,
    message: impl Into<String>,
) -> ApiError {
    ApiError::new(code, message)
        .with("path", path)
        .with("operation", operation)
}

fn code(error: &io::Error) -> ErrorCode {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => ErrorCode::FileNotFound,
        Some(Errno::ACCESS | Errno::PERM) => ErrorCode::PermissionDenied,
        Some(Errno::EXIST | Errno::NOTEMPTY) => ErrorCode::FileExists,
        Some(Errno::ISDIR) => ErrorCode::IsDirectory,
        Some(Errno::NOTDIR) => ErrorCode::NotDirectory,
        Some(Errno::NOSPC | Errno::DQUOT) => ErrorCode::NoSpace,
        Some(Errno::MFILE | Errno::NFILE) => ErrorCode::TooManyFiles,
        Some(Errno::MLINK | Errno::LOOP) => ErrorCode::TooManyLinks,
        Some(Errno::NAMETOOLONG) => ErrorCode::NameTooLong,
        Some(Errno::ROFS) => ErrorCode::ReadOnly,
        Some(Errno::BUSY | Errno::TXTBSY) => ErrorCode::ResourceBusy,
        _ => ErrorCode::FilesystemError,
    }
}
