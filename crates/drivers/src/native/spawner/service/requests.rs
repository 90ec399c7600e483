//! What a server asks for, and the answers.

use std::os::fd::AsFd;
use std::time::Instant;

use hutch_protocol::BootId;

use super::{BOOTS_MAX, PARKED_MAX, QUEUE_MAX, REST, Service};
use crate::native::protocol::{Answer, Ask, PAGE, Refusal, Request};
use crate::native::spawner::server_link;
use crate::native::spawner::slot::{Slot, Stage};

impl Service {
    pub(super) fn greet(&mut self) {
        for (peer, request) in self.link.greetings() {
            let Ask::Hello {
                generation,
                sandboxd,
                parked,
            } = request.body
            else {
                continue;
            };
            if generation < self.generation {
                let message = format!("generation {} is obeyed", self.generation);
                let reason = Refusal::Superseded;
                let answer = Answer::Failed { reason, message };
                let _ = server_link::send_to(&peer, request.id, answer, &[]);
                continue;
            }
            self.generation = generation;
            self.sandboxd = sandboxd;
            self.parked = parked.min(PARKED_MAX);
            // Requests of the server before have nobody to answer to.
            self.queue.clear();
            self.link.obey(peer);
            self.link.send(request.id, Answer::Welcome {}, &[]);
        }
    }

    pub(super) fn answer(&mut self, request: Request) {
        let Request { id, body, .. } = request;
        match body {
            Ask::Hello { .. } => {
                self.refuse(id, Refusal::Step, "hello comes once".into());
            }
            Ask::Start { spec } => {
                if self.queue.len() >= QUEUE_MAX || self.slots.len() >= BOOTS_MAX {
                    let message = format!(
                        "{} sandboxes run on this machine, which is all that one spawner holds",
                        self.slots.len()
                    );
                    return self.refuse(id, Refusal::Capacity, message);
                }
                if self.find(spec.boot).is_some() {
                    let message = format!("boot {} exists already", spec.boot);
                    return self.refuse(id, Refusal::Step, message);
                }
                self.queue.push_back((id, spec));
            }
            Ask::Running { after } => self.list(id, after),
            Ask::Stop { boot } => self.stop(id, boot),
        }
    }

    fn list(&mut self, id: u64, after: Option<BootId>) {
        let mut running: Vec<(&Slot, BootId)> = self
            .slots
            .values()
            .filter(|slot| matches!(slot.stage, Stage::Running))
            .filter_map(|slot| Some((slot, slot.boot.as_ref()?.identity.boot)))
            .filter(|(_, boot)| after.is_none_or(|after| *boot > after))
            .collect();
        running.sort_by_key(|(_, boot)| *boot);
        let more = running.len() > PAGE;
        running.truncate(PAGE);
        let boots = running
            .iter()
            .filter_map(|(slot, _)| slot.boot.clone())
            .collect();
        let fds: Vec<_> = running.iter().map(|(slot, _)| slot.pidfd.as_fd()).collect();
        self.link.send(id, Answer::Running { boots, more }, &fds);
    }

    fn stop(&mut self, id: u64, boot: BootId) {
        self.queue.retain(|(_, spec)| spec.boot != boot);
        // While a boot ends nobody waits for its first command: a good moment
        // to prepare the next, unless the last preparation failed.
        let now = Instant::now();
        if self.prepare_after <= now + REST {
            self.prepare_after = now;
        }
        let Some(key) = self.find(boot) else {
            return self.link.send(id, Answer::Stopped {}, &[]);
        };
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        match slot.kill() {
            Ok(()) => slot.stops.push(id),
            Err(cause) => {
                let message = format!("kill {boot}: {cause}");
                self.refuse(id, Refusal::Step, message);
            }
        }
    }

    fn find(&self, boot: BootId) -> Option<u64> {
        self.slots
            .iter()
            .find(|(_, slot)| {
                slot.boot
                    .as_ref()
                    .is_some_and(|known| known.identity.boot == boot)
            })
            .map(|(key, _)| *key)
    }
}
