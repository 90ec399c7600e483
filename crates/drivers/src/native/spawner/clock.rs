//! Where the time of a boot goes.

use std::time::Instant;

/// Named steps with how long each took.
pub struct Steps {
    last: Instant,
    done: Vec<(String, u64)>,
}

impl Steps {
    /// Starts counting.
    pub fn start() -> Self {
        Self {
            last: Instant::now(),
            done: Vec::new(),
        }
    }

    /// Ends the current step and names it.
    pub fn mark(&mut self, name: &str) {
        let now = Instant::now();
        let took = now.duration_since(self.last).as_micros();
        self.last = now;
        self.done
            .push((name.to_owned(), u64::try_from(took).unwrap_or(u64::MAX)));
    }
}

impl Default for Steps {
    fn default() -> Self {
        Self::start()
    }
}

impl From<Steps> for Vec<(String, u64)> {
    fn from(steps: Steps) -> Self {
        steps.done
    }
}
