//! Reading a whole file.

use super::Files;
use super::failure::{failure, typed};
use super::media::media_type;
use super::path::Location;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hutch_protocol::{ApiError, ErrorCode};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};

/// The largest file that is read into one answer.
const WHOLE_MAX: u64 = 32 * 1024 * 1024;
/// The most that its content may take in one answer, encoded: a message has less than 24 MiB.
const ENCODED_MAX: usize = 23 * 1024 * 1024;

/// How content is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadEncoding {
    /// Text if it is valid UTF-8, base64 otherwise.
    Fitting,
    /// Text, U+FFFD for what is not.
    Utf8,
    /// Base64.
    Base64,
}

/// Content as it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// Base64.
    Base64(String),
}

/// One whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFile {
    /// Its content.
    pub content: Content,
    /// Its length in bytes.
    pub size: usize,
    /// Its media type.
    pub media_type: &'static str,
}

impl Files {
    /// Reads a regular file of at most 32 MiB.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND`, `IS_DIRECTORY`, `PERMISSION_DENIED`, `FILE_TOO_LARGE`, and what else the
    /// kernel says.
    pub async fn read(&self, path: &str, encoding: ReadEncoding) -> Result<ReadFile, ApiError> {
        self.blocking("file.read", path, move |location| read(location, encoding))
            .await
    }
}

fn read(location: &Location, encoding: ReadEncoding) -> Result<ReadFile, ApiError> {
    let (file, size) = open(location)?;
    if size > WHOLE_MAX {
        return Err(too_large(location, size, WHOLE_MAX));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // The size is only what it was: files of /proc have none, others grow.
    let read = file.take(WHOLE_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| failure(location.operation, &location.shown, &error))?;
    let size = bytes.len();
    if size as u64 > WHOLE_MAX {
        return Err(too_large(location, size as u64, WHOLE_MAX));
    }
    let content = match encoding {
        ReadEncoding::Base64 => Content::Base64(BASE64_STANDARD.encode(&bytes)),
        ReadEncoding::Utf8 => Content::Text(String::from_utf8_lossy(&bytes).into_owned()),
        ReadEncoding::Fitting => match String::from_utf8(bytes) {
            Ok(text) => Content::Text(text),
            Err(error) => Content::Base64(BASE64_STANDARD.encode(error.as_bytes())),
        },
    };
    if encoded_length(&content) > ENCODED_MAX {
        return Err(too_large(location, size as u64, ENCODED_MAX as u64));
    }
    let media_type = media_type(&location.path, matches!(content, Content::Text(_)));
    Ok(ReadFile {
        content,
        size,
        media_type,
    })
}

fn encoded_length(content: &Content) -> usize {
    match content {
        Content::Base64(text) => text.len(),
        Content::Text(text) => text
            .bytes()
            .map(|byte| match byte {
                b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
                0..=0x1f => 6,
                _ => 1,
            })
            .sum(),
    }
}

fn too_large(location: &Location, actual: u64, most: u64) -> ApiError {
    typed(
        ErrorCode::FileTooLarge,
        location.operation,
        &location.shown,
        format!(
            "File too large: {} has {actual} bytes and one answer holds {most}; read it as a stream, with encoding \"none\"",
            location.shown
        ),
    )
    .with("actualSize", actual)
    .with("maxSize", most)
}

/// Opens a regular file, without ever waiting for a writer at a fifo.
pub(super) fn open(location: &Location) -> Result<(File, u64), ApiError> {
    let fail = |error: io::Error| failure(location.operation, &location.shown, &error);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file =
        rustix::fs::open(&location.path, flags, Mode::empty()).map_err(|e| fail(e.into()))?;
    let file = File::from(file);
    let metadata = file.metadata().map_err(fail)?;
    if metadata.is_dir() {
        return Err(fail(rustix::io::Errno::ISDIR.into()));
    }
    if !metadata.is_file() {
        return Err(irregular(location));
    }
    Ok((file, metadata.len()))
}

pub(super) fn irregular(location: &Location) -> ApiError {
    typed(
        ErrorCode::FilesystemError,
        location.operation,
        &location.shown,
        format!(
            "Not a regular file: {}; use a command for fifos, sockets and devices",
            location.shown
        ),
    )
}
