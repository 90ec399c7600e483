//! One boot, from its preparation to its removal.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Instant;

use hutch_images::HostImage;
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::Pid;

use super::daemon_log::DaemonLog;
use super::fork::{self, Side};
use super::parked::{self, Go, Plan, Told};
use super::service::Setup;
use super::step::Step;
use super::uid_range::UidRange;
use super::{mounts, reclaim};
use crate::native::cgroup::{Limits, SlotGroups};
use crate::native::protocol::Boot;
use crate::native::{packet, process, socket_path};
use crate::{BootIdentity, BootLog, Exit, StartSpec};

/// How many connections may wait for the daemon to accept them.
const BACKLOG: i32 = 128;

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
    netns: u64,
    /// Given back when everything else of the boot is gone.
    _range: UidRange,
}

impl Slot {
    /// Starts the process that prepares a boot.
    pub fn prepare(setup: &Setup, name: String, boots: &std::path::Path) -> io::Result<Self> {
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
        // The host's packages may have changed since the last boot: what is new
        // and private in them must be masked.
        let image = HostImage::prepare(&setup.images).map_err(io::Error::other)?;
        let made = groups.make(range.base()).step("make control groups");
        let forked = made.and_then(|()| fork_parked(setup, &image, &groups, range.base()));
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
            netns: 0,
            _range: range,
        })
    }

    /// Reads what the process told. At the end of what it tells, drops the
    /// socket and returns whether it became the daemon.
    pub fn hear(&mut self) -> Option<bool> {
        loop {
            let control = self.control.as_ref()?;
            match packet::receive::<Told>(control) {
                Ok(Some((Told::Ready { netns, .. }, _))) => {
                    self.netns = netns;
                    self.stage = Stage::Parked;
                }
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
        sandboxd: &std::path::Path,
        generation: hutch_protocol::Generation,
    ) -> io::Result<()> {
        let mut steps = super::clock::Steps::start();
        let limits = Limits::from(spec.instance_type);
        self.groups.limit(&limits).step("set limits")?;
        steps.mark("limits");
        let place = boots.join(&self.name);
        let user = listener(&place, "user").step("listen for users")?;
        let own = listener(&place, "control").step("listen for the server")?;
        steps.mark("sockets");
        let volume = directory(&spec.volume).step("open the volume")?;
        let daemon = mounts::copy(sandboxd).step("open sandboxd")?;
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
        packet::send(control, &go, &fds).step("send the boot on")?;
        let pid = self.pid.as_raw_nonzero().get().cast_unsigned();
        self.boot = Some(Boot {
            identity: BootIdentity {
                boot: spec.boot,
                sandbox: spec.sandbox.clone(),
                pid,
                start_time: process::start_time(pid)?,
                cgroup: self.groups.group().to_owned(),
                netns_inode: self.netns,
                generation,
                data_dir: setup.data.id.clone(),
            },
            slot: self.name.clone(),
        });
        steps.mark("send");
        self.steps = steps.into();
        self.stage = Stage::Starting { request };
        Ok(())
    }

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

    /// Kills everything of the boot.
    pub fn kill(&self) -> io::Result<()> {
        self.groups.kill()?;
        // It may not be in its v2 group yet.
        match rustix::process::kill_process(self.pid, rustix::process::Signal::KILL) {
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
        match fs::remove_dir_all(boots.join(&self.name)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        }
    }
}

/// Forks a process that becomes parked, in a fresh pid namespace and born in
/// its v2 group.
fn fork_parked(
    setup: &Setup,
    image: &HostImage,
    groups: &SlotGroups,
    base: u32,
) -> io::Result<(OwnedFd, Pid, OwnedFd)> {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let born_in = rustix::fs::open(groups.v2(), flags, Mode::empty())?;
    match fork::fork(libc::CLONE_NEWPID, Some(born_in.as_fd())).step("fork")? {
        Side::Parent { pid, pidfd } => {
            rustix::io::ioctl_fionbio(&ours, true)?;
            Ok((ours, pid, pidfd))
        }
        Side::Child => parked::run(Plan {
            groups,
            base,
            image,
            stage: &stage_dir(setup),
            filters: &setup.filters,
            control: theirs,
        }),
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

/// A detached copy of the mount at a directory that the server names. Its own
/// last part may not be a link.
fn directory(path: &std::path::Path) -> io::Result<OwnedFd> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    mounts::copy(path)
}

fn listener(place: &std::path::Path, name: &str) -> io::Result<OwnedFd> {
    let (_dir, address) = socket_path::address(place, name)?;
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}
