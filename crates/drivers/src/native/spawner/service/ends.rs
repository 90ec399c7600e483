//! The ends of boots: noticed, told, cleaned away.

use std::time::Instant;

use rustix::process::{WaitOptions, wait};

use super::{REMOVAL, Service, log};
use crate::Exit;
use crate::native::proof;
use crate::native::protocol::{Answer, Refusal};
use crate::native::spawner::slot::Stage;

impl Service {
    /// The one place that reaps: boots and helpers alike. Boots of a spawner
    /// before are others' children, of whom only the end is told.
    pub(super) fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let found = self.slots.iter().find(|(_, slot)| slot.pid == pid);
            if let Some(key) = found.filter(|(_, slot)| slot.is_child).map(|(key, _)| *key) {
                let how = format!("{status:?}");
                self.end(key, status.exit_status(), status.terminating_signal(), &how);
            }
        }
        let gone: Vec<u64> = self
            .slots
            .iter()
            .filter(|(_, slot)| !slot.is_child && slot.exit.is_none())
            .filter(|(_, slot)| proof::has_ended(&slot.pidfd))
            .map(|(key, _)| *key)
            .collect();
        for key in gone {
            self.end(key, None, None, "unseen");
        }
    }

    fn end(&mut self, key: u64, code: Option<i32>, signal: Option<i32>, how: &str) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        // What it told last.
        slot.hear();
        let exit = Exit {
            code,
            signal,
            oom_kills: slot.groups.oom_kills(),
        };
        slot.exit = Some(exit);
        slot.note_end(exit);
        slot.ended = Some(Instant::now());
        let stage = std::mem::replace(&mut slot.stage, Stage::Ended);
        let failure = slot.failure.clone();
        match (stage, &slot.boot) {
            (Stage::Starting { request }, _) => {
                let why = failure.unwrap_or_else(|| format!("it ended: {how}"));
                self.refuse(request, Refusal::Step, format!("the boot failed: {why}"));
            }
            (Stage::Running, Some(boot)) => {
                let boot = boot.identity.boot;
                self.link.send(0, Answer::Exited { boot, exit }, &[]);
            }
            (Stage::Preparing, _) => {
                let why = failure.unwrap_or_else(|| format!("it ended: {how}"));
                self.preparation_failed(&format!("a boot could not be prepared: {why}"));
            }
            _ => {}
        }
    }

    /// Removes the groups of boots that ended, and answers who waits for it.
    pub(super) fn remove_ended(&mut self) {
        let now = Instant::now();
        let mut gone = Vec::new();
        for (key, slot) in &self.slots {
            let Some(since) = slot.ended else { continue };
            match slot.remove(&self.boots) {
                Ok(()) => gone.push((*key, None)),
                Err(cause) if now > since + REMOVAL => {
                    // Its groups stay for the next spawner to reclaim.
                    let message = format!("{}: remove: {cause}", slot.name);
                    log(&message);
                    gone.push((*key, Some(message)));
                }
                Err(_) => {}
            }
        }
        for (key, failure) in gone {
            let Some(slot) = self.slots.remove(&key) else {
                continue;
            };
            for id in slot.stops {
                match &failure {
                    None => self.link.send(id, Answer::Stopped {}, &[]),
                    Some(message) => self.refuse(id, Refusal::Step, message.clone()),
                }
            }
        }
    }
}
