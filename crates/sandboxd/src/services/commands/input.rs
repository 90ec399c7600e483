//! What a command reads.

use super::request::Stdin;
use bytes::Bytes;
use capnweb::{ErrorValue, ReadableStream, Value};
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::task::AbortHandle;

/// Feeds a command's standard input; ends with its drop.
#[derive(Debug, Default)]
pub(super) struct Feeder(Option<AbortHandle>);

impl Drop for Feeder {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

/// The reading end for the command, if it reads anything, and what feeds it.
pub(super) fn feed(stdin: Stdin) -> io::Result<(Option<OwnedFd>, Feeder)> {
    if matches!(stdin, Stdin::Empty) {
        return Ok((None, Feeder(None)));
    }
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let writer = pipe::Sender::from_owned_fd(writer)?;
    let task = tokio::spawn(async move {
        match stdin {
            Stdin::Empty => {}
            Stdin::Bytes(bytes) => drop(write(writer, bytes).await),
            Stdin::Stream(stream) => copy(stream, writer).await,
        }
    });
    Ok((Some(reader), Feeder(Some(task.abort_handle()))))
}

/// Writes everything. A command that stops reading is no failure.
async fn write(mut writer: pipe::Sender, bytes: Bytes) -> io::Result<pipe::Sender> {
    writer.write_all(&bytes).await?;
    Ok(writer)
}

async fn copy(mut stream: ReadableStream, mut writer: pipe::Sender) {
    while let Some(Ok(chunk)) = stream.next().await {
        let bytes = match chunk {
            Value::Bytes(bytes) => bytes,
            Value::String(text) => Bytes::from(text),
            _ => {
                return stream.cancel(ErrorValue::type_error("stdin takes bytes or text"));
            }
        };
        match write(writer, bytes).await {
            Ok(back) => writer = back,
            // The command has closed its standard input or is gone.
            Err(_) => return stream.cancel(ErrorValue::new("Error", "the command reads no more")),
        }
    }
}
