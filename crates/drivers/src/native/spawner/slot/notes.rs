//! What a boot leaves in its sandbox's log.

use super::Slot;
use crate::Exit;

impl Slot {
    /// Writes to the sandbox's log that the daemon runs, and where the time
    /// went.
    pub fn note_start(&mut self, steps: &[(String, u64)]) {
        let (Some(log), Some(boot)) = (&mut self.log, &self.boot) else {
            return;
        };
        let whole: u64 = steps.iter().map(|(_, took)| took).sum();
        let parts: Vec<String> = steps
            .iter()
            .map(|(step, took)| format!("{step} {took}"))
            .collect();
        log.note(&format!(
            "boot {} started in {whole} us: {}",
            boot.identity.boot,
            parts.join(", ")
        ));
    }

    /// Writes to the sandbox's log what the daemon said last, and how it
    /// ended.
    pub fn note_end(&mut self, exit: Exit) {
        let (Some(mut log), Some(boot)) = (self.log.take(), &self.boot) else {
            return;
        };
        log.drain();
        let boot = boot.identity.boot;
        let how = match (&self.failure, exit.signal, exit.code) {
            (Some(why), ..) => format!("failed: {why}"),
            (None, Some(signal), _) => format!("ended by signal {signal}"),
            (None, None, Some(code)) => format!("ended with code {code}"),
            (None, None, None) => "ended".into(),
        };
        let memory = match exit.oom_kills {
            0 => String::new(),
            kills => format!("; {kills} processes were killed for memory"),
        };
        log.note(&format!("boot {boot} {how}{memory}"));
    }
}
