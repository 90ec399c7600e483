//! From this machine into a sandbox.

use super::{Options, copied, failed, lost, progress::Progress};
use crate::{commands::exec::stdin, failure::Failure};
use capnweb::{ErrorValue, ReadableStream, Value};
use hutch_client::{Copied, Sandbox, WriteTarOptions};
use hutch_copy::{Source, pipe};
use std::{io::IsTerminal, path::Path};

/// Bytes of the archive that may wait for the server.
const WINDOW: usize = 1 << 20;

/// Unpacks the archive on standard input in a directory of the sandbox.
pub async fn from_stdin(
    sandbox: &Sandbox,
    path: &str,
    options: &Options,
    progress: &Progress,
) -> Result<Copied, Failure> {
    if std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "standard input is a terminal; pipe an archive into it, such as tar c . | hutch cp - main:/workspace",
        ));
    }
    let mut input = stdin::stream();
    let (writer, archive) = ReadableStream::channel(WINDOW);
    let feed = async {
        while let Some(chunk) = input.next().await {
            match chunk {
                Ok(chunk) => {
                    progress.add(chunk.as_bytes().map_or(0, bytes::Bytes::len));
                    if writer.write(chunk).await.is_err() {
                        return;
                    }
                }
                Err(error) => return writer.abort(error),
            }
        }
        writer.close();
    };
    let write = WriteTarOptions {
        as_copy: false,
        keep_owners: options.archive,
    };
    let write = sandbox.write_tar(path, archive, &write);
    let mut write = std::pin::pin!(write);
    tokio::select! {
        // A refusal comes before the input has ended.
        copied = &mut write => Ok(copied?),
        () = feed => Ok(write.await?),
    }
}

/// Copies a path of this machine.
pub async fn from_path(
    sandbox: &Sandbox,
    source: &Path,
    path: &str,
    options: &Options,
    progress: &Progress,
) -> Result<Copied, Failure> {
    let (opened, follow) = (source.to_owned(), options.follow_link);
    let source = tokio::task::spawn_blocking(move || Source::open(&opened, follow));
    let source = source
        .await
        .map_err(lost)?
        .map_err(|error| failed(&error))?;
    let (to, mut chunks) = pipe::writer();
    let work = tokio::task::spawn_blocking(move || {
        hutch_copy::pack(&source, to).map(|(copied, _)| copied)
    });
    let (writer, archive) = ReadableStream::channel(WINDOW);
    let feed = async {
        while let Some(chunk) = chunks.recv().await {
            progress.add(chunk.len());
            if writer.write(Value::Bytes(chunk)).await.is_err() {
                // The sandbox has refused it, and says why.
                drop(chunks);
                return Ok(None);
            }
        }
        match work.await.map_err(lost)? {
            Ok(packed) => {
                writer.close();
                Ok(Some(packed))
            }
            Err(error) => {
                writer.abort(ErrorValue::new("Error", error.to_string()));
                Err(failed(&error))
            }
        }
    };
    let write = WriteTarOptions {
        as_copy: true,
        keep_owners: options.archive,
    };
    let (packed, written) = tokio::join!(feed, sandbox.write_tar(path, archive, &write));
    match packed? {
        Some(packed) => written.map(|_| copied(packed)).map_err(Failure::from),
        None => Ok(written?),
    }
}
