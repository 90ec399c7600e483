//! Streams that know the length and digest of what went through them.

use std::io::{self, Read, Write};

/// Passes bytes on, counting and hashing them.
#[derive(Debug)]
pub(crate) struct Hashing<S> {
    stream: S,
    hasher: blake3::Hasher,
    length: u64,
}

impl<S> Hashing<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            hasher: blake3::Hasher::new(),
            length: 0,
        }
    }

    /// The stream, how many bytes went through and their BLAKE3 in hex.
    pub(crate) fn finish(self) -> (S, u64, String) {
        let digest = self.hasher.finalize().to_hex().to_string();
        (self.stream, self.length, digest)
    }

    fn took(&mut self, bytes: &[u8]) -> usize {
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        bytes.len()
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes)?;
        Ok(self.took(&bytes[..written]))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        Ok(self.took(&buffer[..read]))
    }
}
