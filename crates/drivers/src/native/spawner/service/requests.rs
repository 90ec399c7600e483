//! What a server asks for, and the answers.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use hutch_failpoint::failpoint;
use hutch_protocol::BootId;

use super::{BOOTS_MAX, PARKED_MAX, QUEUE_MAX, Service, log};
use crate::native::protocol::{Answer, Ask, Greeting, Hello, PAGE, Refusal, Request, VERSION};
use crate::native::spawner::record;
use crate::native::spawner::server_link::{self, Newcomer};
use crate::native::spawner::slot::{Slot, Stage};
use crate::native::spawner::upgrade::{Asker, Upgrade};

impl Service {
    pub(super) fn greet(&mut self) {
        for newcomer in self.link.greetings() {
            let Newcomer {
                peer,
                greeting: Greeting { v, id, body: hello },
                program,
            } = newcomer;
            let refuse = |reason, message| {
                let _ = server_link::send_to(&peer, id, Answer::Failed { reason, message }, &[]);
            };
            if hello.generation < self.generation {
                refuse(
                    Refusal::Superseded,
                    format!("generation {} is obeyed", self.generation),
                );
                continue;
            }
            let speaks = v == VERSION;
            let is_another = !hello.build.is_empty() && hello.build != self.setup.build;
            let is_newer = hello.generation > self.generation || !speaks;
            match program {
                Some(program) if is_another && is_newer => {
                    let asker = Asker {
                        peer,
                        id,
                        speaks,
                        hello,
                    };
                    self.upgrade = Some(Upgrade::asked(program, asker));
                }
                _ if speaks => self.obey(peer, id, hello),
                _ => refuse(
                    Refusal::Version,
                    format!("the spawner speaks version {VERSION} of its protocol"),
                ),
            }
        }
    }

    /// Obeys a server from now on, and tells the one before.
    pub(super) fn obey(&mut self, peer: OwnedFd, id: u64, hello: Hello) {
        let generation = hello.generation;
        if generation > self.generation {
            self.link.send(0, Answer::Superseded { generation }, &[]);
            let run = self.setup.data.run();
            if let Err(cause) = record::write_generation(&run, generation.0) {
                log(&format!("record generation {generation}: {cause}"));
            }
        }
        self.generation = generation;
        self.sandboxd = hello.sandboxd;
        self.ahead.ask(hello.parked.min(PARKED_MAX));
        self.cpu = hello.cpu;
        // Requests of the server before have nobody to answer to.
        self.queue.clear();
        self.link.obey(peer);
        self.link.send(id, Answer::Welcome {}, &[]);
    }

    pub(super) fn answer(&mut self, request: Request) {
        let Request { id, body, .. } = request;
        match body {
            Ask::Hello(_) => {
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
        if !self.is_after_failure(now) {
            self.prepare_after = now;
        }
        let Some(key) = self.find(boot) else {
            return self.link.send(id, Answer::Stopped {}, &[]);
        };
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        match slot.kill() {
            Ok(()) => {
                let _ = failpoint!("spawner.killed");
                slot.stops.push(id);
            }
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
