//! The daemon's log: its standard error, which the host drains.

use std::io;

/// Writes to standard error and never fails or waits: what the host does not
/// take is lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = rustix::io::write(rustix::stdio::stderr(), bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
