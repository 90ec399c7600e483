//! The command's output to ours.

use crate::failure::Failure;
use bytes::Bytes;
use hutch_client::ByteStream;
use std::io::{ErrorKind, Write};
use tokio::sync::{mpsc, oneshot};

/// Chunks that may wait for our reader; then the command waits.
const AHEAD: usize = 4;

/// How a copy ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// The command closed its end.
    All,
    /// Our reader went away first.
    ReaderGone,
}

/// Copies until the command closes its end, each chunk as it comes. A reader of
/// ours that goes away closes the command's end, as a pipe between them would.
pub async fn copy(
    mut from: ByteStream,
    to: impl Write + Send + 'static,
    name: &str,
) -> Result<Copied, Failure> {
    let mut writer = Writer::start(to);
    loop {
        let chunk = tokio::select! {
            chunk = from.next() => chunk?,
            ended = &mut writer.ended => return outcome(ended, name),
        };
        let Some(chunk) = chunk else { break };
        if writer.chunks.send(chunk).await.is_err() {
            break;
        }
    }
    let Writer { chunks, ended } = writer;
    drop(chunks);
    outcome(ended.await, name)
}

/// A thread that writes: a write to a stopped terminal or a full pipe blocks.
struct Writer {
    chunks: mpsc::Sender<Bytes>,
    ended: oneshot::Receiver<std::io::Result<()>>,
}

impl Writer {
    fn start(mut to: impl Write + Send + 'static) -> Self {
        let (chunks, mut waiting) = mpsc::channel::<Bytes>(AHEAD);
        let (done, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let mut write = || {
                while let Some(chunk) = waiting.blocking_recv() {
                    to.write_all(&chunk)?;
                    to.flush()?;
                }
                Ok(())
            };
            let result = write();
            // The copy may have been broken off.
            let _ = done.send(result);
        });
        Self { chunks, ended }
    }
}

fn outcome(
    ended: Result<std::io::Result<()>, oneshot::error::RecvError>,
    name: &str,
) -> Result<Copied, Failure> {
    match ended {
        Ok(Ok(())) => Ok(Copied::All),
        Ok(Err(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(Copied::ReaderGone),
        Ok(Err(error)) => Err(Failure::new(
            "OUTPUT_FAILED",
            format!("cannot write to {name}: {error}"),
        )),
        Err(_) => Err(Failure::new(
            "OUTPUT_FAILED",
            format!("cannot write to {name}: the writer ended"),
        )),
    }
}
