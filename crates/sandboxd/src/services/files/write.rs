//! Writing files.

use super::Files;
use super::failure::{failure, typed};
use super::path::Location;
use super::read::irregular;
use super::replace::Replacement;
use bytes::Bytes;
use capnweb::{ReadableStream, Value};
use hutch_protocol::limits::ARGUMENT_CONTENT_MAX;
use hutch_protocol::{ApiError, ErrorCode};
use std::io::{self, Write};

/// What to write.
#[derive(Debug)]
pub enum NewContent {
    /// These bytes, at most 32 MiB.
    Bytes(Bytes),
    /// What a stream brings, however much.
    Stream(ReadableStream),
}

const OPERATION: &str = "file.write";

impl Files {
    /// Writes a file, whole or not at all, and returns how many bytes that were.
    ///
    /// # Errors
    /// `FILE_TOO_LARGE`, `IS_DIRECTORY`, `NO_SPACE`, and what else the kernel says; a stream's
    /// own error as `FILESYSTEM_ERROR`.
    pub async fn write(&self, path: &str, content: NewContent) -> Result<u64, ApiError> {
        match content {
            NewContent::Bytes(bytes) => self.write_bytes(path, bytes).await,
            NewContent::Stream(stream) => self.write_stream(path, stream).await,
        }
    }

    async fn write_bytes(&self, path: &str, bytes: Bytes) -> Result<u64, ApiError> {
        if bytes.len() > ARGUMENT_CONTENT_MAX {
            let message = format!(
                "File too large: the content for {path} has {} bytes and one call takes {ARGUMENT_CONTENT_MAX}; write it as a stream",
                bytes.len()
            );
            return Err(typed(ErrorCode::FileTooLarge, OPERATION, path, message)
                .with("actualSize", bytes.len())
                .with("maxSize", ARGUMENT_CONTENT_MAX));
        }
        self.blocking(OPERATION, path, move |location| {
            let mut replacement = begin(location)?;
            let write = |replacement: &mut Replacement| replacement.file().write_all(&bytes);
            write(&mut replacement)
                .and_then(|()| replacement.commit())
                .map_err(|error| failure(OPERATION, &location.shown, &error))?;
            Ok(bytes.len() as u64)
        })
        .await
    }

    async fn write_stream(&self, path: &str, mut stream: ReadableStream) -> Result<u64, ApiError> {
        let mut replacement = self.blocking(OPERATION, path, begin).await?;
        let mut written = 0;
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| {
                let message = format!("The content for {path} ended early: {}", error.message);
                typed(ErrorCode::FilesystemError, OPERATION, path, message)
            })?;
            let bytes = match chunk {
                Value::Bytes(bytes) => bytes,
                Value::String(text) => Bytes::from(text),
                _ => {
                    let message = format!("The content for {path} must be bytes or text");
                    return Err(typed(ErrorCode::ValidationFailed, OPERATION, path, message));
                }
            };
            written += bytes.len() as u64;
            // Moved there and back, so that a caller who goes away leaves no trace either.
            replacement = self
                .blocking(OPERATION, path, move |location| {
                    let write = replacement.file().write_all(&bytes);
                    write.map_err(|error| failure(OPERATION, &location.shown, &error))?;
                    Ok(replacement)
                })
                .await?;
        }
        self.blocking(OPERATION, path, move |location| {
            replacement
                .commit()
                .map_err(|error| failure(OPERATION, &location.shown, &error))
        })
        .await?;
        Ok(written)
    }
}

fn begin(location: &Location) -> Result<Replacement, ApiError> {
    Replacement::begin(&location.path).map_err(|error: io::Error| {
        if error.raw_os_error() == Some(libc::EOPNOTSUPP) {
            return irregular(location);
        }
        failure(OPERATION, &location.shown, &error)
    })
}
