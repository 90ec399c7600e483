//! The spawner's loop: one thread, one `poll`, short steps.

mod ahead;
mod ends;
mod handover;
mod preparation;
mod requests;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hutch_images::HostImage;
use hutch_protocol::Generation;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, wait};

use ahead::Ahead;

use super::daemon_log::DaemonLog;
use super::server_link::{self, ServerLink};
use super::setup::Setup;
use super::slot::{self, Slot, Stage, Wishes};
use super::upgrade::Upgrade;
use super::{adopt, daemon, mover, reclaim, record, signals};
use crate::boot_log;
use crate::native::data_dir::private_dir;
use crate::native::protocol::{Answer, Refusal};
use crate::{CpuLimit, StartSpec};

/// How long the spawner stays with nothing to hold and no server.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether the data directory is still there.
const LOOK: Duration = Duration::from_secs(5);
/// How often the removal of groups is tried again.
const RETRY: Duration = Duration::from_millis(1);
/// How long groups may stay busy after PID 1 is gone.
const REMOVAL: Duration = Duration::from_secs(10);
/// How many boots one spawner holds.
const BOOTS_MAX: usize = 2048;
/// How many starts wait for a prepared boot.
const QUEUE_MAX: usize = 256;
/// The most boots that a server can ask to have prepared ahead, and the most
/// that are prepared at once.
const PARKED_MAX: usize = 8;
/// The spawner.
pub struct Service {
    setup: Setup,
    link: ServerLink,
    slots: BTreeMap<u64, Slot>,
    next_slot: u64,
    /// Starts that wait for a prepared boot.
    queue: VecDeque<(u64, StartSpec)>,
    generation: Generation,
    sandboxd: PathBuf,
    ahead: Ahead,
    image: Option<(HostImage, Instant)>,
    cpu: CpuLimit,
    prepare_after: Instant,
    idle_since: Option<Instant>,
    boots: PathBuf,
    /// Readable once a signal came.
    signals: OwnedFd,
    /// What is to be become as soon as nothing is half done.
    upgrade: Option<Upgrade>,
}

impl Service {
    /// Takes over what the spawner before left running, and listens. Nothing is
    /// prepared before the first server says hello.
    pub fn new(setup: Setup) -> io::Result<Self> {
        let survivors = adopt::survivors(&setup)?;
        let link = ServerLink::listen(&setup.data)?;
        let generation = record::read_generation(&setup.data.run());
        let mut service = Self::empty(setup, link)?;
        service.generation = Generation(generation);
        service.hold(survivors);
        Ok(service)
    }

    /// Adds boots that run already.
    fn hold(&mut self, slots: Vec<Slot>) {
        for slot in slots {
            self.next_slot += 1;
            self.slots.insert(self.next_slot, slot);
        }
    }

    fn empty(setup: Setup, link: ServerLink) -> io::Result<Self> {
        private_dir(&slot::stage_dir(&setup))?;
        let boots = slot::boots_dir(&setup);
        private_dir(&boots)?;
        private_dir(&setup.data.path.join(boot_log::LOGS))?;
        Ok(Self {
            link,
            slots: BTreeMap::new(),
            next_slot: 0,
            queue: VecDeque::new(),
            generation: Generation(0),
            sandboxd: PathBuf::new(),
            ahead: Ahead::default(),
            image: None,
            cpu: CpuLimit::Share,
            prepare_after: Instant::now(),
            idle_since: None,
            boots,
            signals: signals::open()?,
            upgrade: None,
            setup,
        })
    }

    /// Serves until there is nothing to hold and no server.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            let pause = self.pause();
            self.wait_for_events(pause)?;
            if self.must_end() {
                return self.close();
            }
            self.reap();
            self.hear();
            self.drain_logs();
            self.link.accept();
            self.greet();
            while let Some(request) = self.link.next() {
                self.answer(request);
            }
            self.remove_ended();
            if self.upgrade.is_some() {
                self.come_to_rest();
            } else {
                self.start_queued();
                self.drop_surplus();
                self.prepare_ahead();
            }
            if self.is_done() {
                return self.close();
            }
        }
    }

    fn wait_for_events(&self, pause: Duration) -> io::Result<()> {
        let mut sources = self.link.sources();
        sources.push(self.signals.as_fd());
        for slot in self.slots.values() {
            if slot.exit.is_none() {
                sources.push(slot.pidfd.as_fd());
            }
            sources.extend(slot.control.iter().map(AsFd::as_fd));
            sources.extend(slot.log.iter().filter_map(DaemonLog::source));
        }
        let mut fds: Vec<PollFd<'_>> = sources
            .iter()
            .map(|source| PollFd::new(source, PollFlags::IN))
            .collect();
        let pause = Timespec::try_from(pause).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        match poll(&mut fds, Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    /// How long nothing needs doing unless something happens.
    fn pause(&self) -> Duration {
        let now = Instant::now();
        let mut pause = LOOK;
        if self.slots.values().any(|slot| slot.ended.is_some()) {
            pause = pause.min(RETRY);
        }
        if self.upgrade.is_some() {
            pause = pause.min(RETRY);
        } else if self.wanted() > 0 {
            pause = pause.min(self.prepare_after.saturating_duration_since(now));
        }
        for held_up in self
            .slots
            .values()
            .filter_map(|slot| slot.log.as_ref()?.held_up())
        {
            pause = pause.min(held_up);
        }
        if let Some(change) = self.ahead.changes_in(now) {
            pause = pause.min(change);
        }
        if let Some(since) = self.idle_since {
            pause = pause.min((since + GRACE).saturating_duration_since(now));
        }
        pause
    }

    fn hear(&mut self) {
        for slot in self.slots.values_mut() {
            let Some(became) = slot.hear() else { continue };
            let (Stage::Starting { request }, true, Some(boot)) =
                (&slot.stage, became, slot.boot.clone())
            else {
                continue;
            };
            let request = *request;
            slot.stage = Stage::Running;
            let steps = std::mem::take(&mut slot.steps);
            slot.note_start(&steps);
            if let Some(Err(cause)) = slot.record().map(|record| record.write(&self.boots)) {
                log(&format!("{}: record: {cause}", slot.name));
            }
            let pid = slot.pid.as_raw_nonzero().get();
            let answer = Answer::Started { boot, steps };
            self.link.send(request, answer, &[slot.pidfd.as_fd()]);
            if let Err(cause) = mover::start(&slot.groups, pid) {
                log(&format!("{}: part the daemon: {cause}", slot.name));
            }
        }
    }

    fn drain_logs(&mut self) {
        for log in self.slots.values_mut().filter_map(|slot| slot.log.as_mut()) {
            log.drain();
        }
    }

    fn start_queued(&mut self) {
        loop {
            let parked = self
                .slots
                .values_mut()
                .find(|slot| matches!(slot.stage, Stage::Parked));
            let Some(slot) = parked else {
                self.ahead.note(self.queue.len(), Instant::now());
                return;
            };
            let Some((request, spec)) = self.queue.pop_front() else {
                return;
            };
            let started = slot.start(
                &self.setup,
                &self.boots,
                request,
                &spec,
                &Wishes {
                    sandboxd: &self.sandboxd,
                    generation: self.generation,
                    cpu: self.cpu,
                },
            );
            let now = Instant::now();
            self.prepare_after = now + self.ahead.rest(now);
            if let Err(cause) = started {
                // Half started, it is of no further use.
                let _ = slot.kill();
                slot.stage = Stage::Ended;
                self.refuse(request, Refusal::Step, cause.to_string());
            }
        }
    }

    fn refuse(&mut self, id: u64, reason: Refusal, message: String) {
        self.link.send(id, Answer::Failed { reason, message }, &[]);
    }

    fn is_done(&mut self) -> bool {
        let holds = self.slots.values().any(|slot| {
            !matches!(slot.stage, Stage::Preparing | Stage::Parked) || !slot.stops.is_empty()
        });
        if holds || self.link.is_connected() {
            self.idle_since = None;
            return false;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        since.elapsed() >= GRACE
    }

    /// Whether it was told to end, or its data directory is gone, so that
    /// nobody can ask for anything any more.
    fn must_end(&mut self) -> bool {
        let mut told = false;
        while let Some(wish) = signals::next(&self.signals) {
            match wish {
                signals::Wish::End => told = true,
                signals::Wish::Upgrade => self.upgrade_from_own_path(),
            }
        }
        let lock = std::fs::metadata(self.setup.data.run().join(daemon::LOCK));
        let own = self.setup.lock.metadata();
        told || !matches!((lock, own), (Ok(lock), Ok(own)) if lock.ino() == own.ino())
    }

    /// Kills what runs and what was prepared, then removes everything with
    /// the data directory's id.
    fn close(mut self) -> io::Result<()> {
        let run = self.setup.data.run();
        let _ = std::fs::remove_file(run.join(server_link::SOCKET));
        for slot in self.slots.values() {
            let _ = slot.kill();
        }
        // Until there is no child any more: all were killed, and a helper ends
        // when it finds its boot gone.
        while let Ok(Some(_)) = wait(WaitOptions::empty()) {}
        self.slots.clear();
        reclaim::all(&self.setup.data, &self.setup.hierarchies)?;
        let _ = std::fs::remove_dir(slot::stage_dir(&self.setup));
        Ok(())
    }
}

/// One line on the spawner's log.
fn log(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}
