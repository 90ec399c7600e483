//! What people see while something takes long.

use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

/// What takes less is not worth a word.
const SOON: Duration = Duration::from_secs(1);
/// How often the time is shown anew.
const BEAT: Duration = Duration::from_millis(200);

/// Awaits `work` and says on stderr, if that is a terminal, what is being waited
/// for and for how long.
pub async fn told<T>(what: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    let begun = Instant::now();
    let mut status = Status::default();
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(BEAT) => {}
        }
        if begun.elapsed() >= SOON {
            status.show(&format!("{what}: {} s", begun.elapsed().as_secs()));
        }
    }
}

/// One line on stderr that is written over and taken away at the end.
#[derive(Debug, Default)]
pub struct Status {
    shown: bool,
}

impl Status {
    /// Shows another text in the line.
    pub fn show(&mut self, text: &str) {
        self.shown = true;
        let mut err = std::io::stderr();
        // Nothing is left to tell when stderr is closed.
        let _ = write!(err, "\r\u{1b}[K{text}");
        let _ = err.flush();
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        if self.shown {
            let mut err = std::io::stderr();
            let _ = write!(err, "\r\u{1b}[K");
            let _ = err.flush();
        }
    }
}
