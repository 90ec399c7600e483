//! One boot, from its preparation to its removal.

mod birth;
mod notes;

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::time::Instant;

use hutch_failpoint::failpoint;
use hutch_images::HostImage;
use rustix::process::{Pid, Signal, pidfd_send_signal};

use birth::{directory, fork_parked, listener};

use super::daemon_log::DaemonLog;
use super::parked::{Go, Told};
use super::record::{Pipe, Record};
use super::setup::Setup;
use super::step::Step;
use super::uid_range::UidRange;
use super::{mounts, reclaim, record};
use crate::native::cgroup::{Limits, SlotGroups};
use crate::native::protocol::Boot;
use crate::native::{packet, process, proof};
use crate::{BootIdentity, BootLog, CpuLimit, Exit, StartSpec};

/// Where a boot is in its life.
pub enum Stage {
    /// The process prepares itself.
    Preparing,
    /// It waits for a sandbox.
    Parked,
    /// It becomes this request's sandbox.
    Starting {
        /// The request's id.
        request: u64,
    },
    /// The daemon runs.
    Running,
    /// PID 1 is gone; the groups are being removed.
    Ended,
}

/// One boot.
pub struct Slot {
    /// Its name: the group's last part and the directory with its sockets.
    pub name: String,
    /// Where it is in its life.
    pub stage: Stage,
    /// Its groups.
    pub groups: SlotGroups,
    /// PID 1.
    pub pid: Pid,
    /// PID 1's pidfd.
    pub pidfd: OwnedFd,
    /// Whether PID 1 is this process's child, so that its exit status is told.
    pub is_child: bool,
    /// Its network namespace, once it is made.
    pub netns: Option<OwnedFd>,
    /// The socket to the process, until it is the daemon.
    pub control: Option<OwnedFd>,
    /// What the daemon writes, once it was asked for.
    pub log: Option<DaemonLog>,
    /// The boot, once asked for.
    pub boot: Option<Boot>,
    /// Where its time went.
    pub steps: Vec<(String, u64)>,
    /// Why it failed, as it told.
    pub failure: Option<String>,
    /// Whether it told that it becomes the daemon.
    pub becoming: bool,
    /// Requests that wait for its removal.
    pub stops: Vec<u64>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Since when its groups are being removed.
    pub ended: Option<Instant>,
    inodes: Inodes,
    /// Given back when everything else of the boot is gone.
    range: UidRange,
}

/// What names the boot's parts to the kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Inodes {
    netns: u64,
    pidns: u64,
    cgroup: u64,
}

/// What the server wants of every boot.
pub struct Wishes<'a> {
    /// The daemon's binary.
    pub sandboxd: &'a std::path::Path,
    /// The server's generation.
    pub generation: hutch_protocol::Generation,
    /// Whether CPU is capped.
    pub cpu: CpuLimit,
}

/// A running boot of the program or the spawner before.
pub struct Revived {
    /// What is on record.
    pub record: Record,
    /// PID 1.
    pub pid: Pid,
    /// PID 1's pidfd.
    pub pidfd: OwnedFd,
    /// Its network namespace.
    pub netns: OwnedFd,
    /// What its daemon writes.
    pub log: DaemonLog,
    /// Its host ids.
    pub range: UidRange,
    /// Whether PID 1 is this process's child.
    pub is_child: bool,
}

impl Slot {
    /// Starts the process that prepares a boot.
    pub fn prepare(
        setup: &Setup,
        image: &HostImage,
        name: String,
        boots: &std::path::Path,
    ) -> io::Result<Self> {
        let all = setup.hierarchies.clone();
        let v2 = all.v2.clone().unwrap_or_default();
        let is_used = |data_dir: &str| v2.join(format!("hutch-{data_dir}")).exists();
        let range = UidRange::take(&setup.data.id, is_used).step("take a range of host ids")?;
        let groups = SlotGroups::named(all, format!("{}/{name}", setup.data.group()))?;
        // Not its parents: the data directory may be gone.
        fs::DirBuilder::new()
            .mode(0o700)
            .create(boots.join(&name))
            .step("make the boot's directory")?;
        let made = groups.make(range.base()).step("make control groups");
        let made = made.and_then(|()| Ok(failpoint!("spawner.grouped")?));
        let forked = made.and_then(|()| fork_parked(setup, image, &groups, range.base()));
        let _ = failpoint!("spawner.forked");
        let (control, pid, pidfd) = match forked {
            Ok(forked) => forked,
            Err(cause) => {
                let _ = groups.remove_once();
                return Err(cause);
            }
        };
        Ok(Self {
            name,
            stage: Stage::Preparing,
            groups,
            pid,
            pidfd,
            control: Some(control),
            log: None,
            boot: None,
            steps: Vec::new(),
            failure: None,
            becoming: false,
            stops: Vec::new(),
            exit: None,
            ended: None,
            is_child: true,
            netns: None,
            inodes: Inodes::default(),
            range,
        })
    }

    /// Goes on with a boot that runs.
    pub fn revive(setup: &Setup, revived: Revived) -> io::Result<Self> {
        let boot = revived.record.boot;
        let group = boot.identity.cgroup.clone();
        Ok(Self {
            name: boot.slot.clone(),
            stage: Stage::Running,
            groups: SlotGroups::named(setup.hierarchies.clone(), group)?,
            pid: revived.pid,
            pidfd: revived.pidfd,
            is_child: revived.is_child,
            netns: Some(revived.netns),
            control: None,
            log: Some(revived.log),
            inodes: Inodes {
                netns: boot.identity.netns_inode,
                pidns: boot.identity.pidns_inode,
                cgroup: boot.identity.cgroup_inode,
            },
            boot: Some(boot),
            steps: Vec::new(),
            failure: None,
            becoming: false,
            stops: Vec::new(),
            exit: None,
            ended: None,
            range: revived.range,
        })
    }

    /// What is kept on disk of a boot that runs.
    pub fn record(&self) -> Option<Record> {
        let pipe = self.log.as_ref().and_then(DaemonLog::pipe);
        let output = pipe.and_then(|pipe| Pipe::of(&rustix::fs::fstat(pipe).ok()?));
        Some(Record {
            v: record::VERSION,
            boot: self.boot.clone()?,
            range: self.range.index(),
            output,
        })
    }

    /// Opens and names the namespaces of a process that has prepared itself.
    fn look_inside(&mut self) -> io::Result<()> {
        let pid = self.pid.as_raw_nonzero().get().cast_unsigned();
        self.netns = Some(fs::File::open(format!("/proc/{pid}/ns/net"))?.into());
        self.inodes = Inodes {
            netns: proof::namespace(pid, "net")?,
            pidns: proof::namespace(pid, "pid")?,
            cgroup: fs::metadata(self.groups.v2())?.ino(),
        };
        Ok(())
    }

    /// Reads what the process told. At the end of what it tells, drops the
    /// socket and returns whether it became the daemon.
    pub fn hear(&mut self) -> Option<bool> {
        loop {
            let control = self.control.as_ref()?;
            match packet::receive::<Told>(control) {
                Ok(Some((Told::Ready { .. }, _))) => match self.look_inside() {
                    Ok(()) => self.stage = Stage::Parked,
                    Err(cause) => {
                        self.failure = Some(format!("look at its namespaces: {cause}"));
                        let _ = self.kill();
                    }
                },
                Ok(Some((Told::Becoming { steps }, _))) => {
                    self.steps.extend(steps);
                    self.becoming = true;
                }
                Ok(Some((Told::Failed { message }, _))) => {
                    self.failure = Some(message);
                    self.becoming = false;
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return None,
                Ok(None) | Err(_) => {
                    self.control = None;
                    return Some(self.becoming);
                }
            }
        }
    }

    /// Sends the parked process on to become the sandbox of `spec`.
    pub fn start(
        &mut self,
        setup: &Setup,
        boots: &std::path::Path,
        request: u64,
        spec: &StartSpec,
        wishes: &Wishes<'_>,
    ) -> io::Result<()> {
        let mut steps = super::clock::Steps::start();
        let limits = Limits::of(spec.instance_type, wishes.cpu);
        self.groups.limit(&limits).step("set limits")?;
        steps.mark("limits");
        let place = boots.join(&self.name);
        let user = listener(&place, "user").step("listen for users")?;
        let own = listener(&place, "control").step("listen for the server")?;
        steps.mark("sockets");
        let volume = directory(&spec.volume).step("open the volume")?;
        let daemon = mounts::copy(wishes.sandboxd).step("open sandboxd")?;
        let log = BootLog::of(&setup.data.path, &spec.sandbox);
        let (log, output) = DaemonLog::open(log).step("make the log's pipe")?;
        self.log = Some(log);
        let go = Go {
            boot: spec.boot,
            hostname: spec.hostname.clone(),
            shm: limits.commands_memory / 2,
        };
        let control = self
            .control
            .as_ref()
            .ok_or_else(|| io::Error::other("the prepared boot is gone"))?;
        let fds = [&volume, &user, &own, &daemon, &output].map(AsFd::as_fd);
        failpoint!("spawner.limited")?;
        packet::send(control, &go, &fds).step("send the boot on")?;
        let _ = failpoint!("spawner.sent");
        let pid = self.pid.as_raw_nonzero().get().cast_unsigned();
        self.boot = Some(Boot {
            identity: BootIdentity {
                boot: spec.boot,
                sandbox: spec.sandbox.clone(),
                pid,
                start_time: process::start_time(pid)?,
                cgroup: self.groups.group().to_owned(),
                netns_inode: self.inodes.netns,
                pidns_inode: self.inodes.pidns,
                cgroup_inode: self.inodes.cgroup,
                machine: setup.machine.clone(),
                generation: wishes.generation,
                data_dir: setup.data.id.clone(),
            },
            slot: self.name.clone(),
        });
        steps.mark("send");
        self.steps = steps.into();
        self.stage = Stage::Starting { request };
        Ok(())
    }

    /// Kills everything of the boot.
    pub fn kill(&self) -> io::Result<()> {
        self.groups.kill()?;
        // It may not be in its v2 group yet.
        match pidfd_send_signal(&self.pidfd, Signal::KILL) {
            Err(cause) if self.exit.is_none() && cause != rustix::io::Errno::SRCH => {
                Err(cause.into())
            }
            _ => Ok(()),
        }
    }

    /// Removes the groups and the sockets of a boot that ended.
    pub fn remove(&self, boots: &std::path::Path) -> io::Result<()> {
        self.groups.kill()?;
        self.groups.remove_once()?;
        failpoint!("spawner.ungrouped")?;
        match fs::remove_dir_all(boots.join(&self.name)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        }
    }
}

/// An empty directory of the host that every parked process mounts over, each
/// in its own mount namespace.
pub fn stage_dir(setup: &Setup) -> PathBuf {
    setup.data.run().join("stage")
}

/// The directory with the boots' sockets.
pub fn boots_dir(setup: &Setup) -> PathBuf {
    setup.data.run().join(reclaim::BOOTS)
}
