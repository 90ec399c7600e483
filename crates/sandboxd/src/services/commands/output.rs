//! One output pipe of a command.

use bytes::{Bytes, BytesMut};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{Semaphore, watch};

/// How much is read at a time.
const PIECE: usize = 64 * 1024;
/// How long the pipe may be silent after the command's own end before we stop listening.
const QUIET: Duration = Duration::from_millis(100);
/// How much is still taken after the command's own end. A pipe holds less, so all
/// that the command itself wrote arrives; only a child left behind can write more.
const AFTER_END: usize = 1024 * 1024;

/// What a command writes to one stream, until end of file or, once the command
/// itself has ended, until the pipe is quiet: a child left behind may hold it
/// open for ever.
#[derive(Debug)]
pub struct Output {
    pipe: pipe::Receiver,
    ended: watch::Receiver<bool>,
    after_end: usize,
    finished: bool,
    buffer: BytesMut,
}

impl Output {
    pub(super) fn new(pipe: pipe::Receiver, ended: watch::Receiver<bool>) -> Self {
        Self {
            pipe,
            ended,
            after_end: 0,
            finished: false,
            buffer: BytesMut::new(),
        }
    }

    /// The next bytes; `None` after the last. Cancel safe.
    pub async fn next(&mut self) -> Option<Bytes> {
        if self.finished {
            return None;
        }
        self.buffer.reserve(PIECE);
        let read = match self.until_ended().await {
            Some(read) => read,
            None if self.after_end >= AFTER_END => return None,
            None => {
                let read = self.pipe.read_buf(&mut self.buffer);
                let read = tokio::time::timeout(QUIET, read).await.ok()?;
                self.after_end += read.as_ref().copied().unwrap_or_default();
                read
            }
        };
        match read {
            Ok(1..) => Some(self.buffer.split().freeze()),
            Ok(0) | Err(_) => {
                self.finished = true;
                None
            }
        }
    }

    /// Reads while the command itself runs; `None` once it has ended or was given up.
    async fn until_ended(&mut self) -> Option<io::Result<usize>> {
        tokio::select! {
            biased;
            _ = self.ended.wait_for(|ended| *ended) => None,
            read = self.pipe.read_buf(&mut self.buffer) => Some(read),
        }
    }

    /// Keeps the pipe open for children left behind, and throws away what they
    /// write: closing it would end them at their next line.
    pub fn leave(self, sinks: &Arc<Semaphore>) {
        if self.finished {
            return;
        }
        let Ok(permit) = Arc::clone(sinks).try_acquire_owned() else {
            return;
        };
        let mut pipe = self.pipe;
        // Ends with the last process that holds the other end.
        tokio::spawn(async move {
            let mut scrap = vec![0; PIECE];
            while let Ok(1..) = pipe.read(&mut scrap).await {}
            drop(permit);
        });
    }
}
