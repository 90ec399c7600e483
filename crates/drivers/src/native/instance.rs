//! A boot of the native driver, seen from the server.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::cgroup::SlotGroups;
use super::data_dir::DataDir;
use super::driver::Shared;
use super::link::Calls;
use super::poll_fd;
use super::protocol::{Ask, Boot};
use crate::{BootIdentity, BoxFuture, DriverError, Exit, Instance, Port, Usage};

/// How long an end may be known by the pidfd alone before its notice comes.
const NOTICE: Duration = Duration::from_secs(2);
/// How long a stop may take.
const STOP: Duration = Duration::from_secs(30);

/// A running boot.
pub struct NativeInstance {
    identity: BootIdentity,
    groups: SlotGroups,
    /// The directory with the two sockets.
    place: OwnedFd,
    pidfd: AsyncFd<OwnedFd>,
    exit: watch::Receiver<Option<Exit>>,
    calls: Arc<Calls>,
    shared: Arc<Shared>,
    /// Where the time of the boot went: step and microseconds.
    steps: Vec<(String, u64)>,
}

impl NativeInstance {
    /// Takes a boot over from the spawner's answer.
    pub fn new(
        boot: Boot,
        pidfd: OwnedFd,
        exit: watch::Receiver<Option<Exit>>,
        calls: Arc<Calls>,
        shared: Arc<Shared>,
        steps: Vec<(String, u64)>,
    ) -> io::Result<Self> {
        let place = boots_dir(shared.data()).join(&boot.slot);
        let groups = SlotGroups::named(shared.hierarchies().clone(), boot.identity.cgroup.clone())?;
        let flags =
            rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        Ok(Self {
            identity: boot.identity,
            groups,
            place: rustix::fs::open(place, flags, rustix::fs::Mode::empty())?,
            pidfd: poll_fd::new(pidfd, Interest::READABLE)?,
            exit,
            calls,
            shared,
            steps,
        })
    }

    async fn on_thread(
        &self,
        step: &'static str,
        work: impl FnOnce(SlotGroups) -> io::Result<()> + Send + 'static,
    ) -> Result<(), DriverError> {
        let groups = self.groups.clone();
        let done = tokio::task::spawn_blocking(move || work(groups)).await;
        match done.map_err(io::Error::other).and_then(|done| done) {
            Err(cause) if cause.kind() == io::ErrorKind::TimedOut => {
                Err(DriverError::Deadline(step.into()))
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Err(DriverError::Gone),
            done => done.map_err(DriverError::step(step)),
        }
    }
}

/// Where the spawner makes the boots' sockets.
fn boots_dir(data: &DataDir) -> std::path::PathBuf {
    data.run().join("boots")
}

impl Instance for NativeInstance {
    fn identity(&self) -> &BootIdentity {
        &self.identity
    }

    fn connect(&self, port: Port) -> BoxFuture<'_, io::Result<UnixStream>> {
        let name = match port {
            Port::User => "user",
            Port::Control => "control",
        };
        // By descriptor: an address holds 107 bytes of path.
        let path = format!("/proc/self/fd/{}/{name}", self.place.as_raw_fd());
        Box::pin(UnixStream::connect(path))
    }

    fn freeze(&self, deadline: Duration) -> BoxFuture<'_, Result<(), DriverError>> {
        let until = Instant::now() + deadline;
        Box::pin(self.on_thread("freeze the sandbox", move |groups| groups.freeze(until)))
    }

    fn thaw(&self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.on_thread("thaw the sandbox", |groups| groups.thaw()))
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), DriverError>> {
        let boot = self.identity.boot;
        Box::pin(async move {
            let link = self.shared.link().await?;
            link.ask(Ask::Stop { boot }, STOP).await.map(|_| ())
        })
    }

    fn exited(&self) -> BoxFuture<'_, Exit> {
        Box::pin(async move {
            let mut exit = self.exit.clone();
            let noticed = async {
                // A sender that is gone with its link tells nothing.
                if let Ok(known) = exit.wait_for(Option::is_some).await {
                    return known.unwrap_or(Exit::UNKNOWN);
                }
                std::future::pending().await
            };
            let gone = async {
                // Unless nobody is left who could tell.
                if self.pidfd.readable().await.is_ok() && !self.calls.is_closed() {
                    tokio::time::sleep(NOTICE).await;
                }
                Exit::UNKNOWN
            };
            tokio::select! {
                biased;
                exit = noticed => exit,
                exit = gone => exit,
            }
        })
    }

    fn usage(&self) -> Result<Usage, DriverError> {
        self.groups.usage().map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => DriverError::Gone,
            _ => DriverError::step("read the sandbox's accounts")(cause),
        })
    }

    fn boot_steps(&self) -> &[(String, u64)] {
        &self.steps
    }
}

impl Drop for NativeInstance {
    fn drop(&mut self) {
        self.calls.forget(self.identity.boot);
    }
}
