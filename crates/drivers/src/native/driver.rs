//! The server's side of the native driver.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::cgroup::Hierarchies;
use super::data_dir::DataDir;
use super::instance::NativeInstance;
use super::link::Link;
use super::protocol::{Answer, Ask, Boot};
use super::{NativeOptions, detect, launch, proof};
use crate::{
    BootLog, BoxFuture, Capabilities, Driver, DriverError, Instance, LogTail, SandboxKey, StartSpec,
};

/// How long a boot may take before it is given up. Far above the ordinary, since a
/// busy machine that prepares a boot first may take seconds.
const START: Duration = Duration::from_secs(30);
/// How long a question to the spawner may take.
const ANSWER: Duration = Duration::from_secs(10);

/// Runs sandboxes as processes of this machine.
pub struct NativeDriver {
    shared: Arc<Shared>,
}

/// What the driver and its instances share.
pub struct Shared {
    options: NativeOptions,
    data: DataDir,
    hierarchies: Hierarchies,
    link: Mutex<Option<Arc<Link>>>,
}

impl Shared {
    /// The connection to the spawner, made anew if it was lost.
    pub async fn link(&self) -> Result<Arc<Link>, DriverError> {
        let mut link = self.link.lock().await;
        if let Some(link) = link.as_ref().filter(|link| !link.is_closed()) {
            return Ok(Arc::clone(link));
        }
        let made = launch::connect(&self.options, &self.data).await?;
        *link = Some(Arc::clone(&made));
        Ok(made)
    }

    /// The data directory.
    pub fn data(&self) -> &DataDir {
        &self.data
    }

    /// The machine's control groups.
    pub fn hierarchies(&self) -> &Hierarchies {
        &self.hierarchies
    }
}

impl NativeDriver {
    /// Connects to the data directory's spawner, starting it if none runs.
    /// The first start on a machine reads all of `/usr`, which may take
    /// seconds.
    ///
    /// # Errors
    /// [`DriverError::Unavailable`] with the reason where this machine or user
    /// cannot run sandboxes, [`DriverError::Superseded`] if a newer server is
    /// obeyed already.
    pub async fn connect_or_start(options: NativeOptions) -> Result<Self, DriverError> {
        let data_dir = options.data_dir.clone();
        let (data, hierarchies) = tokio::task::spawn_blocking(move || look(&data_dir))
            .await
            .map_err(std::io::Error::other)
            .map_err(DriverError::step("look at the machine"))??;
        let shared = Shared {
            options,
            data,
            hierarchies,
            link: Mutex::new(None),
        };
        shared.link().await?;
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// What this machine can do, without starting anything.
    #[must_use]
    pub fn detect() -> Capabilities {
        detect::report()
    }

    async fn boot(&self, spec: StartSpec) -> Result<Arc<dyn Instance>, DriverError> {
        let boot = spec.boot;
        let link = self.shared.link().await?;
        // Before the request: the end may be told right after the start.
        let exit = link.calls().watch(boot);
        let started = link.ask(Ask::Start { spec }, START).await;
        let outcome = match started {
            Ok((Answer::Started { boot, steps }, mut fds)) if fds.len() == 1 => {
                let pidfd = fds.remove(0);
                let calls = Arc::clone(link.calls());
                let shared = Arc::clone(&self.shared);
                NativeInstance::new(boot, pidfd, exit, calls, shared, steps)
                    .map_err(DriverError::step("take the boot over"))
            }
            Ok(_) => Err(DriverError::step("start the sandbox")(
                std::io::ErrorKind::InvalidData.into(),
            )),
            Err(cause) => Err(cause),
        };
        match outcome {
            Ok(instance) => Ok(Arc::new(instance)),
            Err(cause) => {
                link.calls().forget(boot);
                // Nothing half started stays behind.
                if matches!(cause, DriverError::Deadline(_) | DriverError::Step { .. }) {
                    let _ = link.ask(Ask::Stop { boot }, ANSWER).await;
                }
                Err(cause)
            }
        }
    }

    async fn on_log<T: Send + 'static>(
        &self,
        sandbox: SandboxKey,
        step: String,
        work: impl FnOnce(&BootLog) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, DriverError> {
        let log = BootLog::of(&self.shared.data.path, &sandbox);
        let done = tokio::task::spawn_blocking(move || work(&log)).await;
        done.map_err(std::io::Error::other)
            .and_then(|done| done)
            .map_err(DriverError::step(step))
    }

    async fn list(&self) -> Result<Vec<Arc<dyn Instance>>, DriverError> {
        let link = self.shared.link().await?;
        let mut found: Vec<Arc<dyn Instance>> = Vec::new();
        let mut after = None;
        loop {
            let (answer, fds) = link.ask(Ask::Running { after }, ANSWER).await?;
            let Answer::Running { boots, more } = answer else {
                return Err(DriverError::step("list the running sandboxes")(
                    std::io::ErrorKind::InvalidData.into(),
                ));
            };
            after = boots.last().map(|boot| boot.identity.boot);
            for (boot, pidfd) in boots.into_iter().zip(fds) {
                let id = boot.identity.boot;
                match self.prove(&boot, &pidfd) {
                    Ok(()) => {
                        if let Some(instance) = self.adopt(&link, boot, pidfd)? {
                            found.push(Arc::new(instance));
                        }
                    }
                    Err(why) => {
                        tracing::warn!(boot = %id, %why, "not adopted");
                        let _ = link.ask(Ask::Stop { boot: id }, ANSWER).await;
                    }
                }
            }
            if !more || after.is_none() {
                return Ok(found);
            }
        }
    }

    /// Whether a boot is what it is said to be, and this data directory's.
    fn prove(&self, boot: &Boot, pidfd: &OwnedFd) -> Result<(), String> {
        let identity = &boot.identity;
        if identity.data_dir != self.shared.data.id {
            return Err(format!(
                "it belongs to data directory {}",
                identity.data_dir
            ));
        }
        proof::check(identity, &self.shared.hierarchies)?;
        if proof::has_ended(pidfd) {
            return Err("it has ended".into());
        }
        Ok(())
    }

    /// Takes a boot over, or nothing if it ended meanwhile.
    fn adopt(
        &self,
        link: &Link,
        boot: Boot,
        pidfd: OwnedFd,
    ) -> Result<Option<NativeInstance>, DriverError> {
        let id = boot.identity.boot;
        let exit = link.calls().watch(id);
        let calls = Arc::clone(link.calls());
        let shared = Arc::clone(&self.shared);
        match NativeInstance::new(boot, pidfd, exit, calls, shared, Vec::new()) {
            Ok(instance) => Ok(Some(instance)),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                link.calls().forget(id);
                Ok(None)
            }
            Err(cause) => Err(DriverError::step("take a boot over")(cause)),
        }
    }
}

/// Finds out whether sandboxes can run here, and where.
fn look(data_dir: &std::path::Path) -> Result<(DataDir, Hierarchies), DriverError> {
    if let Some(why) = detect::report().obstacle() {
        return Err(DriverError::Unavailable(why));
    }
    let data = DataDir::open(data_dir).map_err(DriverError::step("open the data directory"))?;
    let hierarchies =
        Hierarchies::detect().map_err(DriverError::step("look for control groups"))?;
    Ok((data, hierarchies))
}

impl Driver for NativeDriver {
    fn name(&self) -> &'static str {
        "native"
    }

    fn start(&self, spec: StartSpec) -> BoxFuture<'_, Result<Arc<dyn Instance>, DriverError>> {
        Box::pin(self.boot(spec))
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<Arc<dyn Instance>>, DriverError>> {
        Box::pin(self.list())
    }

    fn log(&self, sandbox: SandboxKey, most: usize) -> BoxFuture<'_, Result<LogTail, DriverError>> {
        let step = format!("read the log of {sandbox}");
        Box::pin(self.on_log(sandbox, step, move |log| log.tail(most)))
    }

    fn forget(&self, sandbox: SandboxKey) -> BoxFuture<'_, Result<(), DriverError>> {
        let step = format!("remove the log of {sandbox}");
        Box::pin(self.on_log(sandbox, step, |log| log.remove()))
    }

    fn report(&self) -> Capabilities {
        Self::detect()
    }
}
