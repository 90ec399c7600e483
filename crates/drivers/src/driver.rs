//! What every driver can do.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Capabilities, DriverError, Instance, LogTail, SandboxKey, StartSpec};

/// A boxed future, as the traits of this crate return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place where sandboxes run.
pub trait Driver: Send + Sync {
    /// The driver's name, as configuration and records write it.
    fn name(&self) -> &'static str;

    /// Boots one sandbox. Resolves when its daemon accepts connections or the
    /// boot failed; a failed boot leaves nothing behind. Dropping the future
    /// does not end a boot that was sent: the instance is then found by
    /// [`Driver::running`].
    fn start(&self, spec: StartSpec) -> BoxFuture<'_, Result<Arc<dyn Instance>, DriverError>>;

    /// The instances of this data directory that run now, for adoption by a
    /// new server.
    fn running(&self) -> BoxFuture<'_, Result<Vec<Arc<dyn Instance>>, DriverError>>;

    /// The last `most` bytes that the boots of a sandbox and their daemons
    /// wrote, running or not. Hostile text, made safe to show.
    fn log(&self, sandbox: SandboxKey, most: usize) -> BoxFuture<'_, Result<LogTail, DriverError>> {
        let _ = (sandbox, most);
        Box::pin(async { Ok(LogTail::default()) })
    }

    /// Drops what is kept of a sandbox that is destroyed: its log.
    fn forget(&self, sandbox: SandboxKey) -> BoxFuture<'_, Result<(), DriverError>> {
        let _ = sandbox;
        Box::pin(async { Ok(()) })
    }

    /// What is in force on this machine and what is missing, in words.
    fn report(&self) -> Capabilities;
}
