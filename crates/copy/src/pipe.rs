//! Joins between blocking work and async streams, with a bounded number of chunks
//! between them.

use bytes::{Buf, Bytes, BytesMut};
use std::io::{self, Read, Write};
use tokio::sync::mpsc;

/// Bytes of one chunk that is written.
const CHUNK: usize = 256 << 10;
/// Chunks on the way.
const AHEAD: usize = 4;

/// A writer whose bytes arrive at the receiver.
#[must_use]
pub fn writer() -> (PipeWriter, mpsc::Receiver<Bytes>) {
    let (chunks, receiver) = mpsc::channel(AHEAD);
    let buffer = BytesMut::with_capacity(CHUNK);
    (PipeWriter { chunks, buffer }, receiver)
}

/// A reader of what the sender sends. A sender that is dropped ends it.
#[must_use]
pub fn reader() -> (mpsc::Sender<io::Result<Bytes>>, PipeReader) {
    let (sender, chunks) = mpsc::channel(AHEAD);
    let now = Bytes::new();
    (sender, PipeReader { chunks, now })
}

/// The blocking end of [`writer`]. Flush it at the end.
#[derive(Debug)]
pub struct PipeWriter {
    chunks: mpsc::Sender<Bytes>,
    buffer: BytesMut,
}

impl PipeWriter {
    fn send(&mut self) -> io::Result<()> {
        let chunk = self.buffer.split().freeze();
        if chunk.is_empty() {
            return Ok(());
        }
        self.chunks
            .blocking_send(chunk)
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = CHUNK - self.buffer.len();
        let taken = bytes.len().min(room);
        self.buffer.reserve(CHUNK - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == CHUNK {
            self.send()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

/// The blocking end of [`reader`].
#[derive(Debug)]
pub struct PipeReader {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    now: Bytes,
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.now.is_empty() {
            match self.chunks.blocking_recv() {
                Some(chunk) => self.now = chunk?,
                None => return Ok(0),
            }
        }
        let taken = self.now.len().min(buffer.len());
        self.now.copy_to_slice(&mut buffer[..taken]);
        Ok(taken)
    }
}
