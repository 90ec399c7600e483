//! Output that goes on for long: lines to stdout from a thread of their own, as a
//! stopped terminal or a full pipe blocks whoever writes to it.

use crate::failure::Failure;
use std::io::{ErrorKind, Write};
use tokio::sync::{mpsc, oneshot};

/// Texts that may wait for our reader; then the stream waits.
const AHEAD: usize = 16;

/// Lines on their way to stdout.
pub struct Lines {
    texts: mpsc::Sender<String>,
    ended: oneshot::Receiver<std::io::Result<()>>,
}

impl Lines {
    /// Starts the thread that writes.
    pub fn start() -> Self {
        let (texts, mut waiting) = mpsc::channel::<String>(AHEAD);
        let (done, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let mut out = std::io::stdout();
            let mut write = || {
                while let Some(text) = waiting.blocking_recv() {
                    writeln!(out, "{text}")?;
                    out.flush()?;
                }
                Ok(())
            };
            // Nobody waits for it when a signal ended us.
            let _ = done.send(write());
        });
        Self { texts, ended }
    }

    /// Adds a line. `false` says that our reader has gone away.
    pub async fn add(&self, line: String) -> bool {
        self.texts.send(line).await.is_ok()
    }

    /// Waits until all is written.
    pub async fn finish(self) -> Result<(), Failure> {
        drop(self.texts);
        match self.ended.await {
            Ok(Err(error)) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(
                "OUTPUT_FAILED",
                format!("cannot write to stdout: {error}"),
            )),
            _ => Ok(()),
        }
    }
}
