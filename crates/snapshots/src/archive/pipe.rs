//! A bounded pipe between two threads, so that compressing and the filesystem
//! work at the same time.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Bytes in one block, and blocks in flight.
const BLOCK: usize = 1 << 20;
const IN_FLIGHT: usize = 4;

/// A pipe. Dropping the writer ends it; dropping the reader fails later writes.
pub(crate) fn pipe() -> (PipeWriter, PipeReader) {
    let (to, from) = sync_channel(IN_FLIGHT);
    let writer = PipeWriter {
        to,
        block: Vec::new(),
    };
    let reader = PipeReader {
        from,
        block: Vec::new(),
        at: 0,
    };
    (writer, reader)
}

/// The end to write to. What is not flushed is lost.
#[derive(Debug)]
pub(crate) struct PipeWriter {
    to: SyncSender<io::Result<Vec<u8>>>,
    block: Vec<u8>,
}

impl PipeWriter {
    /// Ends the pipe with an error for the reader.
    pub(crate) fn fail(self, error: io::Error) {
        // A reader that is gone does not need it.
        let _ = self.to.send(Err(error));
    }
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.capacity() == 0 {
            self.block.reserve_exact(BLOCK);
        }
        let room = BLOCK - self.block.len();
        let taken = &bytes[..bytes.len().min(room)];
        self.block.extend_from_slice(taken);
        if self.block.len() == BLOCK {
            self.flush()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let block = std::mem::take(&mut self.block);
        self.to
            .send(Ok(block))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// The end to read from.
#[derive(Debug)]
pub(crate) struct PipeReader {
    from: Receiver<io::Result<Vec<u8>>>,
    block: Vec<u8>,
    at: usize,
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            let Ok(block) = self.from.recv() else {
                return Ok(0);
            };
            (self.block, self.at) = (block?, 0);
        }
        let rest = &self.block[self.at..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.at += length;
        Ok(length)
    }
}
