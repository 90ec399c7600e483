//! How far a copy is.

use crate::output::wait::Status;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::{Duration, Instant};
use tokio_util::task::AbortOnDropHandle;

/// How often the line is shown anew.
const BEAT: Duration = Duration::from_millis(200);

/// Counts bytes, and shows them on a terminal.
pub struct Progress {
    bytes: Arc<AtomicU64>,
    begun: Instant,
    _line: Option<AbortOnDropHandle<()>>,
}

impl Progress {
    /// Starts to count. A copy that is over soon shows nothing.
    pub fn start(shown: bool) -> Self {
        let bytes = Arc::new(AtomicU64::new(0));
        let begun = Instant::now();
        let counted = Arc::clone(&bytes);
        let line = shown.then(|| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                let mut status = Status::default();
                loop {
                    tokio::time::sleep(BEAT).await;
                    let bytes = counted.load(Ordering::Relaxed);
                    let rate = bytes as f64 / begun.elapsed().as_secs_f64();
                    status.show(&format!("{}  {}/s", size(bytes), size(rate as u64)));
                }
            }))
        });
        Self {
            bytes,
            begun,
            _line: line,
        }
    }

    /// Counts bytes that went by.
    pub fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Takes the line away and says how many seconds it took.
    pub fn end(self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}

/// A number of bytes for people.
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if value < 1024.0 {
            let digits = usize::from(unit != "B");
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_digit_after_the_point() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(256 << 20), "256.0 MiB");
        assert_eq!(size(5 << 40), "5120.0 GiB");
    }
}
