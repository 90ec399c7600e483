//! Composition: the starter, the services, the sockets.

use super::inheritance::Inheritance;
use super::log::Log;
use crate::control_plane::{Control, OpenCalls, Services, User, serve};
use crate::managers::children::{Children, ChildrenSettings, Scope};
use crate::managers::environment::Environment;
use crate::services::commands::{Commands, CommandsSettings};
use crate::services::files::Files;
use crate::services::processes::Processes;
use crate::start::{Starter, StarterSettings, ensure_standard_descriptors};
use rustix::process::DumpableBehavior;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};

/// Threads of the async runtime. The work is waiting; what blocks has threads of its own.
const WORKERS: usize = 2;
/// Threads for blocking work, such as files.
const BLOCKING: usize = 64;
/// How long commands have after a forwarded TERM or INT.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// Something that it cannot do without is missing or gone.
pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    ensure_standard_descriptors()?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let inherited = Inheritance::take()?;
    // Before any thread: the starter is a copy of this process.
    let starter = Starter::fork(&StarterSettings {
        groups: inherited.groups.as_ref(),
        filter: inherited.filter.as_ref(),
    })?;
    tracing_subscriber::fmt()
        .with_writer(Log::default)
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING)
        .enable_all()
        .build()?;
    let result = runtime.block_on(daemon(inherited, starter));
    runtime.shutdown_background();
    result
}

async fn daemon(
    inherited: Inheritance,
    starter: Starter,
) -> Result<(), Box<dyn std::error::Error>> {
    let Inheritance {
        user,
        control,
        groups,
        filter,
        attach,
        workspace,
    } = inherited;
    drop(filter);
    let scope = if std::process::id() == 1 {
        Scope::Everything
    } else {
        Scope::Started
    };
    let children = Children::new(ChildrenSettings {
        starter,
        groups,
        attach,
        scope,
    })?;
    let environment = Arc::new(Environment::inherited());
    let commands = Arc::new(Commands::new(CommandsSettings {
        workspace: workspace.clone(),
        environment: Arc::clone(&environment),
        children: Arc::clone(&children),
    }));
    let services = Arc::new(Services {
        files: Files::new(workspace),
        processes: Arc::new(Processes::new(Arc::clone(&commands))),
        commands,
        environment,
        open_calls: OpenCalls::default(),
    });
    let user = UnixListener::from_std(user)?;
    let control = UnixListener::from_std(control)?;
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "serving");
    tokio::select! {
        () = serve(user, Arc::new(User::new(Arc::clone(&services)))) => Ok(()),
        () = serve(control, Arc::new(Control::new(services))) => Ok(()),
        _ = term.recv() => { stop(&children, libc::SIGTERM).await; Ok(()) }
        _ = int.recv() => { stop(&children, libc::SIGINT).await; Ok(()) }
    }
}

/// Forwards a signal to every command and waits a little for them to end.
async fn stop(children: &Children, signal: i32) {
    children.signal_all(signal).await;
    let ended = async {
        while children.running() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let _ = tokio::time::timeout(STOP_GRACE, ended).await;
}
