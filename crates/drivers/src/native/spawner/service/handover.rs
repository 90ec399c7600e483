//! Going on as another build.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use super::{Service, log};
use crate::BootLog;
use crate::native::protocol::{Answer, Refusal};
use crate::native::spawner::daemon_log::DaemonLog;
use crate::native::spawner::server_link::{self, ServerLink};
use crate::native::spawner::setup::Setup;
use crate::native::spawner::slot::{Revived, Slot, Stage};
use crate::native::spawner::state::{self, Kept, State};
use crate::native::spawner::store::{Incoming, Outgoing};
use crate::native::spawner::uid_range::UidRange;
use crate::native::spawner::upgrade::Upgrade;

impl Service {
    /// Goes on where the program before stopped.
    pub fn resume(setup: Setup, state: State, store: &mut Incoming) -> io::Result<Self> {
        let listener = store.take(state.listener)?;
        let server = state.server.map(|number| store.take(number)).transpose()?;
        let boots = state.boots.into_iter();
        let boots = boots
            .map(|kept| revive(&setup, kept, store))
            .collect::<io::Result<Vec<Slot>>>()?;
        let mut service = Self::empty(setup, ServerLink::resume(listener, server))?;
        service.next_slot = state.next_slot;
        service.generation = state.generation;
        service.sandboxd = state.sandboxd;
        service.ahead.ask(state.parked);
        service.cpu = state.cpu;
        service.queue = state.queue.into();
        service.hold(boots);
        Ok(service)
    }

    /// Whoever replaced the program asks by a signal.
    pub(super) fn upgrade_from_own_path(&mut self) {
        match Upgrade::from_own_path() {
            Ok(upgrade) => self.upgrade = Some(upgrade),
            Err(cause) => log(&format!("the program at this one's path: {cause}")),
        }
    }

    /// Lets go of what was only prepared, waits for what is half done, and
    /// becomes the other build once there is neither.
    pub(super) fn come_to_rest(&mut self) {
        for slot in self.slots.values_mut() {
            if matches!(slot.stage, Stage::Preparing | Stage::Parked) {
                slot.stage = Stage::Ended;
                let _ = slot.kill();
            }
        }
        let rests = |slot: &Slot| matches!(slot.stage, Stage::Running) && slot.stops.is_empty();
        let Some(upgrade) = &self.upgrade else { return };
        let cause = if self.slots.values().all(rests) {
            let mut store = Outgoing::default();
            match self.state(&mut store) {
                Ok(memory) => upgrade.exec(&self.setup.arguments, &memory),
                Err(cause) => cause,
            }
        } else if Instant::now() > upgrade.until {
            io::ErrorKind::TimedOut.into()
        } else {
            return;
        };
        self.stay(&cause);
    }

    /// The other build could not take over: this one serves on.
    fn stay(&mut self, cause: &io::Error) {
        log(&format!("could not become another build: {cause}"));
        let Some(asker) = self.upgrade.take().and_then(|upgrade| upgrade.asker) else {
            return;
        };
        if asker.speaks {
            return self.obey(asker.peer, asker.id, asker.hello);
        }
        let reason = Refusal::Version;
        let message = format!("it could not become this release: {cause}");
        let answer = Answer::Failed { reason, message };
        let _ = server_link::send_to(&asker.peer, asker.id, answer, &[]);
    }

    fn state<'a>(&'a self, store: &mut Outgoing<'a>) -> io::Result<OwnedFd> {
        let mut boots = Vec::new();
        for slot in self.slots.values() {
            let (Some(record), Some(netns)) = (slot.record(), &slot.netns) else {
                continue;
            };
            let output = slot.log.as_ref().and_then(DaemonLog::pipe);
            boots.push(Kept {
                record,
                pidfd: store.keep(slot.pidfd.as_fd())?,
                netns: store.keep(netns.as_fd())?,
                output: output.map(|pipe| store.keep(pipe)).transpose()?,
                is_child: slot.is_child,
            });
        }
        let server = self.link.server();
        State {
            v: state::VERSION,
            data_dir: self.setup.data.id.clone(),
            generation: self.generation,
            sandboxd: self.sandboxd.clone(),
            parked: self.ahead.asked(),
            cpu: self.cpu,
            next_slot: self.next_slot,
            queue: self.queue.iter().cloned().collect(),
            lock: store.keep(self.setup.lock.as_fd())?,
            listener: store.keep(self.link.listener())?,
            server: server.map(|server| store.keep(server)).transpose()?,
            boots,
        }
        .write()
    }
}

fn revive(setup: &Setup, kept: Kept, store: &mut Incoming) -> io::Result<Slot> {
    let identity = &kept.record.boot.identity;
    let pid = rustix::process::Pid::from_raw(identity.pid.cast_signed())
        .ok_or_else(|| io::Error::other("a boot without a process id"))?;
    let pipe = kept.output.map(|number| store.take(number)).transpose()?;
    let log = BootLog::of(&setup.data.path, &identity.sandbox);
    let revived = Revived {
        pid,
        pidfd: store.take(kept.pidfd)?,
        netns: store.take(kept.netns)?,
        log: DaemonLog::resume(log, pipe)?,
        range: UidRange::resume(kept.record.range, &setup.data.id),
        is_child: kept.is_child,
        record: kept.record,
    };
    Slot::revive(setup, revived)
}
