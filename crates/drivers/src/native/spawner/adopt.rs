//! Taking over what a spawner that died left running.
//!
//! The lock says that no other spawner of this data directory runs. A boot is
//! taken over if everything on its record is what the kernel says; whatever
//! else carries the data directory's id is nobody's and is removed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::daemon_log::DaemonLog;
use super::record::{Pipe, Record};
use super::setup::Setup;
use super::slot::{self, Revived, Slot};
use super::uid_range::UidRange;
use super::{mover, reclaim};
use crate::BootLog;
use crate::native::proof;

/// Where a daemon has the pipe.
const OUTPUT: i32 = 2;

/// Takes over what can be proven and removes the rest.
///
/// # Errors
/// A newer hutch started one of the boots, or something cannot be removed.
pub fn survivors(setup: &Setup) -> io::Result<Vec<Slot>> {
    let records = Record::read_all(&slot::boots_dir(setup))?;
    let mut taken = Vec::new();
    for (name, record) in records {
        match prove(setup, &name, &record) {
            Ok(proven) => taken.push((name, record, proven)),
            Err(why) => {
                let _ = writeln!(io::stderr(), "{name}: not taken over: {why}");
            }
        }
    }
    let names: Vec<&str> = taken.iter().map(|(name, ..)| name.as_str()).collect();
    let ranges: Vec<u32> = taken.iter().map(|(_, record, _)| record.range).collect();
    reclaim::all_but(&setup.data, &setup.hierarchies, &names, &ranges)?;
    taken
        .into_iter()
        .map(|(_, record, proven)| revive(setup, record, proven))
        .collect()
}

/// What was opened of a boot while it was proven.
struct Proven {
    pid: Pid,
    pidfd: OwnedFd,
    netns: OwnedFd,
}

fn prove(setup: &Setup, name: &str, record: &Record) -> Result<Proven, String> {
    let identity = &record.boot.identity;
    let own = format!("{}/{name}", setup.data.group());
    if identity.data_dir != setup.data.id || identity.cgroup != own || record.boot.slot != name {
        return Err(format!(
            "it belongs to data directory {}",
            identity.data_dir
        ));
    }
    let said = |cause: rustix::io::Errno| cause.to_string();
    let pid = Pid::from_raw(identity.pid.cast_signed()).ok_or("it has no process id")?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(said)?;
    let netns =
        File::open(format!("/proc/{}/ns/net", identity.pid)).map_err(|cause| cause.to_string())?;
    proof::check(identity, &setup.hierarchies)?;
    if proof::has_ended(&pidfd) {
        return Err("it has ended".into());
    }
    Ok(Proven {
        pid,
        pidfd,
        netns: netns.into(),
    })
}

fn revive(setup: &Setup, record: Record, proven: Proven) -> io::Result<Slot> {
    let range = UidRange::retake(record.range, &setup.data.id)?;
    let pipe = record
        .output
        .and_then(|known| output_of(&proven.pidfd, known).ok().flatten());
    let log = BootLog::of(&setup.data.path, &record.boot.identity.sandbox);
    let mut log = DaemonLog::resume(log, pipe)?;
    let boot = record.boot.identity.boot;
    log.note(&format!("boot {boot} runs on under a new spawner"));
    let slot = Slot::revive(
        setup,
        Revived {
            record,
            pid: proven.pid,
            pidfd: proven.pidfd,
            netns: proven.netns,
            log,
            range,
            is_child: false,
        },
    )?;
    // The spawner before may have died before it did.
    if let Err(cause) = mover::start(&slot.groups, slot.pid.as_raw_nonzero().get()) {
        let _ = writeln!(io::stderr(), "{}: part the daemon: {cause}", slot.name);
    }
    Ok(slot)
}

/// The reading end of the pipe that a daemon writes to, if its descriptor is
/// that pipe still. The daemon may have put anything there.
fn output_of(pidfd: &OwnedFd, known: Pipe) -> io::Result<Option<OwnedFd>> {
    // SAFETY: the pidfd is open, and the call takes plain numbers.
    let got = unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), OUTPUT, 0) };
    let got = i32::try_from(got)
        .ok()
        .filter(|got| *got >= 0)
        .ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the descriptor is new and nothing else owns it.
    let theirs = unsafe { OwnedFd::from_raw_fd(got) };
    if Pipe::of(&rustix::fs::fstat(&theirs)?) != Some(known) {
        return Ok(None);
    }
    let path = format!("/proc/self/fd/{}", theirs.as_fd().as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(Some(rustix::fs::open(path, flags, Mode::empty())?))
}
