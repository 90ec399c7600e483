//! The spawner's loop: one thread, one `poll`, short steps.

mod requests;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hutch_protocol::Generation;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, wait};

use super::daemon_log::DaemonLog;
use super::seccomp::Filters;
use super::server_link::{self, ServerLink};
use super::slot::{self, Slot, Stage};
use super::{daemon, mover, reclaim, signals};
use crate::boot_log;
use crate::native::cgroup::Hierarchies;
use crate::native::data_dir::{DataDir, private_dir};
use crate::native::protocol::{Answer, Refusal};
use crate::{Exit, StartSpec};

/// How long the spawner stays with nothing to hold and no server.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether the data directory is still there.
const LOOK: Duration = Duration::from_secs(5);
/// How long after a start the next boot is prepared, so that the daemon that
/// starts, and its first command, have the processor. Attaching to groups also
/// holds up every fork on the machine for some milliseconds.
const REST: Duration = Duration::from_millis(60);
/// How long after a failed preparation the next is tried.
const BACKOFF: Duration = Duration::from_secs(1);
/// How often the removal of groups is tried again.
const RETRY: Duration = Duration::from_millis(1);
/// How long groups may stay busy after PID 1 is gone.
const REMOVAL: Duration = Duration::from_secs(10);
/// How many boots one spawner holds.
const BOOTS_MAX: usize = 2048;
/// How many starts wait for a prepared boot.
const QUEUE_MAX: usize = 256;
/// The most boots that are prepared ahead.
const PARKED_MAX: usize = 8;

/// What stays the same for the spawner's life.
pub struct Setup {
    /// Whose boots these are.
    pub data: DataDir,
    /// Where groups are made.
    pub hierarchies: Hierarchies,
    /// The compiled filters.
    pub filters: Filters,
    /// Where the root's layers are prepared.
    pub images: PathBuf,
    /// Held for life: one spawner for each data directory.
    pub lock: File,
}

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
    parked: usize,
    prepare_after: Instant,
    idle_since: Option<Instant>,
    boots: PathBuf,
    /// Readable once it was told to end.
    ends: OwnedFd,
}

impl Service {
    /// Listens. Nothing is prepared before the first server says hello.
    pub fn new(setup: Setup) -> io::Result<Self> {
        private_dir(&slot::stage_dir(&setup))?;
        let boots = slot::boots_dir(&setup);
        private_dir(&boots)?;
        private_dir(&setup.data.path.join(boot_log::LOGS))?;
        let link = ServerLink::listen(&setup.data)?;
        Ok(Self {
            link,
            slots: BTreeMap::new(),
            next_slot: 0,
            queue: VecDeque::new(),
            generation: Generation(0),
            sandboxd: PathBuf::new(),
            parked: 0,
            prepare_after: Instant::now(),
            idle_since: None,
            boots,
            ends: signals::ends()?,
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
            self.start_queued();
            self.prepare_ahead();
            if self.is_done() {
                return self.close();
            }
        }
    }

    fn wait_for_events(&self, pause: Duration) -> io::Result<()> {
        let mut sources = self.link.sources();
        sources.push(self.ends.as_fd());
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
        if self.wanted() > 0 {
            pause = pause.min(self.prepare_after.saturating_duration_since(now));
        }
        for held_up in self
            .slots
            .values()
            .filter_map(|slot| slot.log.as_ref()?.held_up())
        {
            pause = pause.min(held_up);
        }
        if let Some(since) = self.idle_since {
            pause = pause.min((since + GRACE).saturating_duration_since(now));
        }
        pause
    }

    /// The one place that reaps: boots and helpers alike.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let Some(slot) = self.slots.values_mut().find(|slot| slot.pid == pid) else {
                continue;
            };
            // What it told last.
            slot.hear();
            let exit = Exit {
                code: status.exit_status(),
                signal: status.terminating_signal(),
                oom_kills: slot.groups.oom_kills(),
            };
            slot.exit = Some(exit);
            slot.note_end(exit);
            slot.ended = Some(Instant::now());
            let stage = std::mem::replace(&mut slot.stage, Stage::Ended);
            let failure = slot.failure.clone();
            match (stage, &slot.boot) {
                (Stage::Starting { request }, _) => {
                    let why = failure.unwrap_or_else(|| format!("it ended: {status:?}"));
                    self.refuse(request, Refusal::Step, format!("the boot failed: {why}"));
                }
                (Stage::Running, Some(boot)) => {
                    let boot = boot.identity.boot;
                    self.link.send(0, Answer::Exited { boot, exit }, &[]);
                }
                (Stage::Preparing, _) => {
                    let why = failure.unwrap_or_else(|| format!("it ended: {status:?}"));
                    self.preparation_failed(&format!("a boot could not be prepared: {why}"));
                }
                _ => {}
            }
        }
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

    fn remove_ended(&mut self) {
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

    fn start_queued(&mut self) {
        loop {
            let parked = self
                .slots
                .values_mut()
                .find(|slot| matches!(slot.stage, Stage::Parked));
            let Some(slot) = parked else { return };
            let Some((request, spec)) = self.queue.pop_front() else {
                return;
            };
            let started = slot.start(
                &self.setup,
                &self.boots,
                request,
                &spec,
                &self.sandboxd,
                self.generation,
            );
            self.prepare_after = Instant::now() + REST;
            if let Err(cause) = started {
                // Half started, it is of no further use.
                let _ = slot.kill();
                slot.stage = Stage::Ended;
                self.refuse(request, Refusal::Step, cause.to_string());
            }
        }
    }

    /// How many more boots should be prepared.
    fn wanted(&self) -> usize {
        let have = self
            .slots
            .values()
            .filter(|slot| matches!(slot.stage, Stage::Preparing | Stage::Parked))
            .count();
        let most = self.parked.max(self.queue.len().min(PARKED_MAX));
        most.saturating_sub(have)
    }

    fn prepare_ahead(&mut self) {
        let urgent = !self.queue.is_empty();
        let now = Instant::now();
        while self.wanted() > 0 && (urgent || now >= self.prepare_after) {
            if self.prepare_after > now + REST {
                return; // The last preparation failed.
            }
            self.next_slot += 1;
            let name = format!("{:x}-{}", std::process::id(), self.next_slot);
            match Slot::prepare(&self.setup, name, &self.boots) {
                Ok(slot) => {
                    self.slots.insert(self.next_slot, slot);
                }
                Err(cause) => self.preparation_failed(&cause.to_string()),
            }
        }
    }

    /// Tells those who wait, and tries again later.
    fn preparation_failed(&mut self, why: &str) {
        log(why);
        self.prepare_after = Instant::now() + BACKOFF;
        for (id, _) in std::mem::take(&mut self.queue) {
            self.refuse(id, Refusal::Step, why.to_owned());
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
    fn must_end(&self) -> bool {
        let told = rustix::io::read(&self.ends, &mut [0_u8; 128]).is_ok();
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
