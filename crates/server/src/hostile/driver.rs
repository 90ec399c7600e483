//! A driver whose instances are doubles.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hutch_drivers::{
    BootIdentity, BoxFuture, Capabilities, Driver, DriverError, Exit, Instance, Port, StartSpec,
    Usage,
};
use hutch_protocol::Generation;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::double::{self, Log};

pub(super) struct HostileDriver(Log);

impl HostileDriver {
    pub(super) fn new(log: Log) -> Self {
        Self(log)
    }
}

impl Driver for HostileDriver {
    fn name(&self) -> &'static str {
        "hostile"
    }

    fn start(&self, spec: StartSpec) -> BoxFuture<'_, Result<Arc<dyn Instance>, DriverError>> {
        let instance = Double {
            identity: BootIdentity {
                boot: spec.boot,
                sandbox: spec.sandbox,
                machine: String::new(),
                pid: 0,
                start_time: 0,
                cgroup: String::new(),
                cgroup_inode: 0,
                netns_inode: 0,
                pidns_inode: 0,
                generation: Generation(1),
                data_dir: String::new(),
            },
            log: self.0.clone(),
            over: CancellationToken::new(),
        };
        Box::pin(async { Ok(Arc::new(instance) as Arc<dyn Instance>) })
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<Arc<dyn Instance>>, DriverError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn report(&self) -> Capabilities {
        Capabilities {
            driver: "hostile",
            items: Vec::new(),
        }
    }
}

struct Double {
    identity: BootIdentity,
    log: Log,
    over: CancellationToken,
}

impl Instance for Double {
    fn identity(&self) -> &BootIdentity {
        &self.identity
    }

    fn connect(&self, port: Port) -> BoxFuture<'_, io::Result<UnixStream>> {
        Box::pin(async move {
            let (ours, theirs) = UnixStream::pair()?;
            let name = self.identity.sandbox.name.to_string();
            let (log, over) = (self.log.clone(), self.over.clone());
            tokio::spawn(over.run_until_cancelled_owned(async move {
                match port {
                    Port::Control => double::control(theirs, name).await,
                    Port::User => double::user(theirs, name, log).await,
                }
            }));
            Ok(ours)
        })
    }

    fn freeze(&self, _: Duration) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { Ok(()) })
    }

    fn thaw(&self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { Ok(()) })
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            self.over.cancel();
            Ok(())
        })
    }

    fn exited(&self) -> BoxFuture<'_, Exit> {
        Box::pin(async {
            self.over.cancelled().await;
            Exit::UNKNOWN
        })
    }

    fn usage(&self) -> Result<Usage, DriverError> {
        Ok(Usage::default())
    }
}
