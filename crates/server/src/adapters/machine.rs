//! The domain's machines on a driver: boots, and the two sessions into each.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capnweb::{CloseReason, Connection, Limits, Session, Stub, Value};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hutch_drivers::{Driver, DriverError, Instance, Port, StartSpec};
use hutch_protocol::limits::FRAME_ACCEPTED_MAX;
use hutch_protocol::{BootId, EnvMap, SandboxPath};
use hutch_sandboxes::SandboxKey;
use hutch_sandboxes::ports::{
    Exit, Machine, MachineError, MachineLog, MachineSpec, Machines, Usage,
};
use tokio_tungstenite::client_async_with_config;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::rpc::error_text;

/// How long a daemon may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(20);

/// How often a broken session is dialled again before its machine counts as
/// lost. An honest daemon breaks none.
const REDIALS: usize = 16;

/// Calls of clients' functions that one session may have open.
const CALLBACKS_MAX: usize = 1024;
/// Bytes of their arguments, and of results that the daemon has not released.
const CALLBACK_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What the two sides of one session may hold of each other.
const REFERENCES_MAX: usize = 32_768;

/// Machines of one driver.
pub(crate) struct DriverMachines {
    driver: Arc<dyn Driver>,
}

impl DriverMachines {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver }
    }
}

fn of_driver(key: &SandboxKey) -> hutch_drivers::SandboxKey {
    hutch_drivers::SandboxKey {
        project: key.project.clone(),
        name: key.path.name().clone(),
    }
}

fn refused(error: DriverError) -> MachineError {
    let text = error.to_string();
    match error {
        DriverError::Unavailable(_) | DriverError::Superseded { .. } => {
            MachineError::Unavailable(text)
        }
        DriverError::Capacity(_) => MachineError::Capacity(text),
        _ => MachineError::Failed(text),
    }
}

impl Machines for DriverMachines {
    fn start(&self, spec: MachineSpec) -> BoxFuture<'_, Result<Arc<dyn Machine>, MachineError>> {
        async move {
            let start = StartSpec {
                boot: spec.boot,
                hostname: spec.key.path.name().to_string(),
                sandbox: of_driver(&spec.key),
                instance_type: spec.instance_type,
                volume: spec.volume,
            };
            let instance = self.driver.start(start).await.map_err(refused)?;
            let machine = DriverMachine::new(instance, spec.key);
            if let Err(error) = machine.connect().await {
                if let Err(error) = machine.instance.stop().await {
                    tracing::error!(boot = %spec.boot, %error, "a machine that does not answer was not ended");
                }
                return Err(error);
            }
            Ok(Arc::new(machine) as Arc<dyn Machine>)
        }
        .boxed()
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<Arc<dyn Machine>>, MachineError>> {
        async move {
            let instances = self.driver.running().await.map_err(refused)?;
            let machines = instances.into_iter().map(|instance| {
                let sandbox = instance.identity().sandbox.clone();
                let key = SandboxKey {
                    project: sandbox.project,
                    path: SandboxPath::new(sandbox.name),
                };
                Arc::new(DriverMachine::new(instance, key)) as Arc<dyn Machine>
            });
            Ok(machines.collect())
        }
        .boxed()
    }

    fn log(&self, key: SandboxKey, most: usize) -> BoxFuture<'_, Result<MachineLog, MachineError>> {
        async move {
            let tail = self.driver.log(of_driver(&key), most).await;
            let tail = tail.map_err(refused)?;
            Ok(MachineLog {
                text: tail.text,
                truncated: tail.truncated,
            })
        }
        .boxed()
    }

    fn forget(&self, key: SandboxKey) -> BoxFuture<'_, Result<(), MachineError>> {
        async move { self.driver.forget(of_driver(&key)).await.map_err(refused) }.boxed()
    }
}

/// One session into a machine. It is dialled again when it breaks; what ran on
/// it is interrupted then, but the machine lives on.
struct Line {
    connection: Arc<Mutex<Connection>>,
    _keeper: AbortOnDropHandle<()>,
}

impl Line {
    fn main(&self) -> Stub {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .main()
    }
}

struct Lines {
    user: Line,
    control: Line,
}

struct DriverMachine {
    instance: Arc<dyn Instance>,
    key: SandboxKey,
    lines: Mutex<Option<Lines>>,
    /// Set once a machine that still runs cannot be reached any more.
    lost: CancellationToken,
}

impl DriverMachine {
    fn new(instance: Arc<dyn Instance>, key: SandboxKey) -> Self {
        Self {
            instance,
            key,
            lines: Mutex::new(None),
            lost: CancellationToken::new(),
        }
    }

    fn main(&self, port: Port) -> Stub {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match (lines.as_ref(), port) {
            (Some(lines), Port::User) => lines.user.main(),
            (Some(lines), Port::Control) => lines.control.main(),
            (None, _) => Stub::rejected(capnweb::ErrorValue::new(
                "Error",
                "not connected to the sandbox",
            )),
        }
    }

    async fn open(&self, port: Port) -> Result<Line, MachineError> {
        let (connection, mut driver) = dial(self.instance.as_ref(), port).await?;
        let connection = Arc::new(Mutex::new(connection));
        let (slot, instance, lost) = (
            Arc::clone(&connection),
            Arc::clone(&self.instance),
            self.lost.clone(),
        );
        let keeper = AbortOnDropHandle::new(tokio::spawn(async move {
            for _ in 0..REDIALS {
                let reason = driver.await;
                tracing::debug!(?port, ?reason, "a session into a sandbox ended");
                let Ok((next, next_driver)) = dial(instance.as_ref(), port).await else {
                    break;
                };
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = next;
                driver = next_driver;
            }
            lost.cancel();
        }));
        Ok(Line {
            connection,
            _keeper: keeper,
        })
    }
}

type SessionDriver = BoxFuture<'static, CloseReason>;

/// Opens one session.
async fn dial(
    instance: &dyn Instance,
    port: Port,
) -> Result<(Connection, SessionDriver), MachineError> {
    let failed = |what: &str, cause: String| MachineError::Failed(format!("{what}: {cause}"));
    let mut limits = Limits::default();
    // What a client may send us, we must be able to pass on.
    limits.send_bytes = FRAME_ACCEPTED_MAX;
    // All that a daemon may call are functions of clients, a few at a time.
    limits.pending_calls = CALLBACKS_MAX;
    limits.pending_bytes = CALLBACK_BYTES_MAX;
    limits.result_bytes = CALLBACK_BYTES_MAX;
    limits.exports = REFERENCES_MAX;
    limits.imports = REFERENCES_MAX;
    let dialling = async {
        let stream = instance.connect(port).await;
        let stream =
            stream.map_err(|error| failed("its daemon cannot be reached", error.to_string()))?;
        let config = Some(capnweb::ws::config(&limits));
        let joined = client_async_with_config("ws://sandbox/rpc", stream, config).await;
        let (socket, _) =
            joined.map_err(|error| failed("its daemon refused the session", error.to_string()))?;
        Ok(socket)
    };
    let socket = tokio::time::timeout(HANDSHAKE, dialling).await;
    let socket =
        socket.map_err(|_| failed("its daemon", "no answer to the handshake".into()))??;
    let (connection, driver) =
        Session::start(capnweb::ws::tungstenite(socket, &limits), None, limits);
    Ok((connection, driver.boxed()))
}

impl Machine for DriverMachine {
    fn boot(&self) -> BootId {
        self.instance.identity().boot
    }

    fn key(&self) -> &SandboxKey {
        &self.key
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::to_value(self.instance.identity()).unwrap_or_default()
    }

    fn user(&self) -> Stub {
        self.main(Port::User)
    }

    fn configure(&self, env: EnvMap) -> BoxFuture<'_, Result<(), MachineError>> {
        async move {
            let failed = |text: String| {
                MachineError::Failed(format!("its daemon did not take the environment: {text}"))
            };
            let options = Value::serialize(&serde_json::json!({ "env": env }));
            let options = options.map_err(|error| failed(error.to_string()))?;
            let answer = self
                .main(Port::Control)
                .call("configure", vec![options])
                .await;
            answer.map(drop).map_err(|error| failed(error_text(&error)))
        }
        .boxed()
    }

    fn held_awake(&self) -> BoxFuture<'_, Result<bool, MachineError>> {
        async move {
            let stats = self.main(Port::Control).call("stats", Vec::new()).await;
            let stats = stats.map_err(|error| MachineError::Failed(error_text(&error)))?;
            Ok(stats.get("holdAwake").and_then(Value::as_u64).unwrap_or(0) > 0)
        }
        .boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), MachineError>> {
        async move {
            let (user, control) =
                tokio::try_join!(self.open(Port::User), self.open(Port::Control))?;
            *self.lines.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Lines { user, control });
            Ok(())
        }
        .boxed()
    }

    fn freeze(&self, deadline: Duration) -> BoxFuture<'_, Result<(), MachineError>> {
        async move { self.instance.freeze(deadline).await.map_err(refused) }.boxed()
    }

    fn thaw(&self) -> BoxFuture<'_, Result<(), MachineError>> {
        async move { self.instance.thaw().await.map_err(refused) }.boxed()
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), MachineError>> {
        async move {
            let stopped = self.instance.stop().await.map_err(refused);
            if stopped.is_ok() {
                *self.lines.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            stopped
        }
        .boxed()
    }

    fn exited(&self) -> BoxFuture<'static, Exit> {
        let instance = Arc::clone(&self.instance);
        async move {
            Exit {
                status: instance.exited().await.code,
            }
        }
        .boxed()
    }

    fn usage(&self) -> BoxFuture<'_, Result<Usage, MachineError>> {
        let instance = Arc::clone(&self.instance);
        async move {
            // Reads a few small files of the kernel.
            let usage = tokio::task::spawn_blocking(move || instance.usage()).await;
            let usage = usage
                .map_err(|error| MachineError::Failed(error.to_string()))?
                .map_err(refused)?;
            Ok(Usage {
                cpu: Duration::from_nanos(usage.commands_cpu_ns),
                oom_kills: usage.oom_kills,
            })
        }
        .boxed()
    }
}
