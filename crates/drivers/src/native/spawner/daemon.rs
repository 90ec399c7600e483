//! Becoming a process of its own, once per data directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_bind, mount_change, mount_remount};
use rustix::thread::UnshareFlags;

use super::fork::{self, Side};
use super::namespaces;
use super::step::Step;
use crate::native::data_dir::{DataDir, private_dir};

/// The file in the run directory whose lock a spawner holds.
pub const LOCK: &str = "spawner.lock";

/// Which of the two processes goes on.
pub enum Role {
    /// The one that was started: the spawner serves.
    Starter,
    /// The spawner.
    Spawner(Ready),
}

/// How the spawner tells its starter that it serves.
pub struct Ready(io::PipeWriter);

impl Ready {
    /// Tells success, or why not.
    pub fn tell(mut self, outcome: Result<(), &io::Error>) -> io::Result<()> {
        match outcome {
            Ok(()) => self.0.write_all(b"+"),
            Err(cause) => self.0.write_all(cause.to_string().as_bytes()),
        }
    }
}

/// Forks the spawner off into a session of its own, its standard streams on
/// its log.
pub fn start(data_dir: &Path) -> io::Result<Role> {
    private_dir(data_dir).step("make the data directory")?;
    let run = data_dir.join("run");
    private_dir(&run).step("make the run directory")?;
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(run.join("spawner.log"))
        .step("open the log")?;
    let (mut told, tell) = io::pipe()?;
    match fork::fork(0, None)? {
        Side::Parent { .. } => {
            drop(tell);
            let mut outcome = String::new();
            told.read_to_string(&mut outcome)?;
            match outcome.as_str() {
                "+" => Ok(Role::Starter),
                "" => Err(io::Error::other("it ended before it served")),
                why => Err(io::Error::other(why.to_owned())),
            }
        }
        Side::Child => {
            drop(told);
            rustix::process::setsid()?;
            let null = File::options().read(true).open("/dev/null")?;
            rustix::stdio::dup2_stdin(&null)?;
            rustix::stdio::dup2_stdout(&log)?;
            rustix::stdio::dup2_stderr(&log)?;
            rustix::process::chdir("/")?;
            Ok(Role::Spawner(Ready(tell)))
        }
    }
}

/// Takes the lock that makes this the data directory's only spawner.
pub fn lock(data: &DataDir) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(data.run().join(LOCK))
        .step("open the lock")?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        io::Error::new(
            io::ErrorKind::AlreadyExists,
            "another spawner holds this data directory",
        )
    })?;
    Ok(file)
}

/// Leaves the host's mounts for a private copy, so that nothing that is
/// mounted here shows up there.
pub fn leave_mounts() -> io::Result<()> {
    namespaces::unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change(
        "/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )?)
}

/// Binds the volumes onto themselves, so that nothing in them has an effect
/// here: a file that a sandbox's root makes belongs to root on disk.
pub fn confine_volumes(data: &DataDir) -> io::Result<()> {
    let volumes = data.path.join("volumes");
    private_dir(&volumes)?;
    mount_bind(&volumes, &volumes)?;
    let flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount_remount(&volumes, flags, c"")?)
}
