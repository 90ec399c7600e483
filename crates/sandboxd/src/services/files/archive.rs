//! Trees as tar archives, streamed out and in.

use super::failure::{failure, typed};
use super::{Files, Location};
use bytes::Bytes;
use capnweb::{ErrorValue, ReadableStream, Value};
use hutch_copy::{Copied, CopyError, Expect, Owners, Source, Target, TargetFault, pipe};
use hutch_protocol::{ApiError, ErrorCode};
use std::io;
use std::path::PathBuf;

/// What may wait in one stream, in bytes.
const WINDOW: usize = 1024 * 1024;
const READING: &str = "tar.read";
const WRITING: &str = "tar.write";

/// Where an archive that is written goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Its members go into the directory of the path.
    Into,
    /// The one thing it holds goes to the path, as a copy would.
    As,
}

impl Files {
    /// The archive of what is at a path, as `docker cp` reads one: `a/b` is the
    /// thing itself, `a/b/.` what is in the directory. Cancelling the stream ends it.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND` and the like for the path itself. What goes wrong later ends
    /// the stream.
    pub async fn read_tar(&self, path: &str, follow: bool) -> Result<ReadableStream, ApiError> {
        let source = self.blocking(READING, path, move |location| {
            Source::open(&location.path, follow)
                .map_err(|error| refused(READING, &location.shown, &error))
        });
        let source = source.await?;
        let turn = self.archives.clone().acquire_owned().await;
        let (to, mut chunks) = pipe::writer();
        let shown = path.to_owned();
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            hutch_copy::pack(&source, to).map(|(copied, _)| copied)
        });
        let (writer, stream) = ReadableStream::channel(WINDOW);
        // Ends with the tree, or when the reader is gone.
        tokio::spawn(async move {
            while let Some(chunk) = chunks.recv().await {
                if writer.write(chunk).await.is_err() {
                    return;
                }
            }
            match work.await {
                Ok(Ok(_)) => writer.close(),
                Ok(Err(error)) => {
                    let error = refused(READING, &shown, &error);
                    writer.abort(ErrorValue::coded(error.code.as_str(), error.message));
                }
                Err(error) => writer.abort(ErrorValue::new("Error", error.to_string())),
            }
        });
        Ok(stream)
    }

    /// Unpacks an archive. Each file takes its name when it is whole; whatever
    /// breaks the stream off leaves no half of one.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for what is no archive or one that leads elsewhere, and
    /// what the kernel says.
    pub async fn write_tar(
        &self,
        path: &str,
        mut stream: ReadableStream,
        placement: Placement,
        keep_owners: bool,
    ) -> Result<Copied, ApiError> {
        let location = Location::parse(path, &self.workspace, WRITING)?;
        let turn = self.archives.clone().acquire_owned().await;
        let (sender, from) = pipe::reader();
        let target: PathBuf = location.path;
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let target = match placement {
                Placement::Into => Target::Into(&target),
                Placement::As => Target::As(&target, Expect::Any),
            };
            let owners = Owners {
                keep: keep_owners,
                set_id: true,
            };
            hutch_copy::unpack(from, target, owners)
        });
        while let Some(chunk) = stream.next().await {
            let chunk = match chunk {
                Ok(Value::Bytes(bytes)) => Ok(bytes),
                Ok(Value::String(text)) => Ok(Bytes::from(text)),
                Ok(_) => Err(io::Error::other("it holds something other than bytes")),
                Err(error) => Err(io::Error::other(error.message)),
            };
            let broken = chunk.is_err();
            // Nobody takes it when the archive was refused; the reason follows.
            if sender.send(chunk).await.is_err() || broken {
                break;
            }
        }
        drop(sender);
        work.await
            .unwrap_or_else(|error| Err(broken_off(path, error)))
            .map_err(|error| refused(WRITING, path, &error))
    }
}

fn broken_off(path: &str, error: tokio::task::JoinError) -> CopyError {
    CopyError::Io {
        path: path.to_owned(),
        source: io::Error::other(error),
    }
}

fn refused(operation: &'static str, path: &str, error: &CopyError) -> ApiError {
    let code = match error {
        CopyError::Io { path: at, source } => return failure(operation, at, source),
        CopyError::Archive(hutch_pax::PaxError::Io(_)) => ErrorCode::FilesystemError,
        CopyError::Archive(_) | CopyError::Refused { .. } => ErrorCode::ValidationFailed,
        CopyError::Target { fault, .. } => match fault {
            TargetFault::Missing => ErrorCode::FileNotFound,
            TargetFault::NotDirectory => ErrorCode::NotDirectory,
            TargetFault::IsDirectory => ErrorCode::IsDirectory,
            TargetFault::Unsuitable => ErrorCode::ValidationFailed,
        },
    };
    typed(code, operation, path, error.to_string())
}
