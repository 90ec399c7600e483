//! The actor of one sandbox: one task that does one step of its life at a time.

mod boot;
mod configure;
mod destroy;
mod restart;
mod sleep;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hutch_protocol::event::SandboxEvent;
use hutch_protocol::{ApiError, EnvPatch, ErrorCode, SleepAfter};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, Span};
use uuid::Uuid;

use crate::claim::retired;
use crate::describe::BootTimings;
use crate::gate::{Gate, Incarnation};
use crate::idle::CpuWindow;
use crate::metrics::{Meter, count};
use crate::ports::{Exit, Journal, Machines, Workspaces};
use crate::record::SandboxRecord;
use crate::sandbox::StartOptions;
use crate::settings::Settings;
use crate::slots::{Slot, Slots};

/// Where an answer goes. The asker may be gone; the step is done all the same.
type Reply = oneshot::Sender<Result<(), ApiError>>;

/// What an actor can be asked for.
pub(crate) enum Command {
    Wake {
        reply: Reply,
    },
    Start {
        options: StartOptions,
        reply: Reply,
    },
    Sleep {
        reply: Reply,
    },
    Restart {
        reply: Reply,
    },
    Destroy {
        reply: Reply,
    },
    Configure {
        env: Option<EnvPatch>,
        sleep_after: Option<SleepAfter>,
        keep_alive: Option<bool>,
        reply: Reply,
    },
}

impl Command {
    fn name(&self) -> &'static str {
        match self {
            Self::Wake { .. } => "wake",
            Self::Start { .. } => "start",
            Self::Sleep { .. } => "sleep",
            Self::Restart { .. } => "restart",
            Self::Destroy { .. } => "destroy",
            Self::Configure { .. } => "configure",
        }
    }
}

/// What readers see, published after each step.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) record: Arc<SandboxRecord>,
    pub(crate) cpu: Option<f64>,
    /// Whether a process was found that holds it awake.
    pub(crate) held: bool,
    /// The step that its actor is at, if any.
    pub(crate) step: Option<&'static str>,
    pub(crate) last_boot: Option<BootTimings>,
}

/// The world, shared by all actors.
pub(crate) struct Ports {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) machines: Arc<dyn Machines>,
    pub(crate) workspaces: Arc<dyn Workspaces>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) meter: Meter,
}

/// The machine that runs now.
struct Running {
    incarnation: Arc<Incarnation>,
    exit: BoxFuture<'static, Exit>,
    cpu: CpuWindow,
    next_sample: Instant,
    slot: Slot,
}

pub(crate) struct Actor {
    ports: Arc<Ports>,
    settings: Arc<Settings>,
    record: SandboxRecord,
    gate: Arc<Gate>,
    view: watch::Sender<View>,
    commands: mpsc::Receiver<Command>,
    running: Option<Running>,
}

/// What may wake the loop besides a command.
enum Wakeup {
    Command(Option<Command>),
    Exited(Exit),
    Sample,
}

impl Actor {
    pub(crate) fn new(
        ports: Arc<Ports>,
        settings: Arc<Settings>,
        record: SandboxRecord,
        commands: mpsc::Receiver<Command>,
    ) -> (Self, Arc<Gate>, watch::Receiver<View>) {
        let gate = Gate::new(settings.open_calls);
        let first = View {
            record: Arc::new(record.clone()),
            cpu: None,
            held: false,
            step: None,
            last_boot: None,
        };
        let (view, reader) = watch::channel(first);
        let actor = Self {
            ports,
            settings,
            record,
            gate: Arc::clone(&gate),
            view,
            commands,
            running: None,
        };
        (actor, gate, reader)
    }

    /// Runs until every handle is gone. Machines run on after that.
    pub(crate) async fn run(mut self) {
        loop {
            match self.wait().await {
                Wakeup::Command(None) => return,
                Wakeup::Command(Some(command)) => {
                    let span = self.span(command.name());
                    self.view
                        .send_modify(|view| view.step = Some(command.name()));
                    self.handle(command).instrument(span).await;
                    self.view.send_modify(|view| view.step = None);
                }
                Wakeup::Exited(exit) => {
                    let span = self.span("exit");
                    self.exited(&exit).instrument(span).await;
                }
                Wakeup::Sample => {
                    let span = self.span("idle");
                    self.sample().instrument(span).await;
                }
            }
        }
    }

    /// What every line says that is logged during a step. At the level of
    /// errors, or the lines of a quiet log would miss it.
    fn span(&self, step: &'static str) -> Span {
        let boot = self.record.boot.as_ref().map(|boot| boot.boot.to_string());
        tracing::error_span!(
            "step",
            step,
            project = %self.record.key.project,
            sandbox = %self.record.key.path,
            boot,
            trace = %Uuid::new_v4().simple(),
        )
    }

    async fn wait(&mut self) -> Wakeup {
        let Some(running) = &mut self.running else {
            return Wakeup::Command(self.commands.recv().await);
        };
        tokio::select! {
            biased;
            exit = &mut running.exit => Wakeup::Exited(exit),
            command = self.commands.recv() => Wakeup::Command(command),
            () = sleep_until(running.next_sample) => Wakeup::Sample,
        }
    }

    async fn handle(&mut self, command: Command) {
        match command {
            Command::Wake { reply } => {
                let _ = reply.send(self.wake().await);
            }
            Command::Start { options, reply } => {
                let _ = reply.send(self.start(options).await);
            }
            Command::Sleep { reply } => {
                let _ = reply.send(self.sleep().await);
            }
            Command::Restart { reply } => {
                let _ = reply.send(self.restart().await);
            }
            Command::Destroy { reply } => {
                let _ = reply.send(self.destroy().await);
            }
            Command::Configure {
                env,
                sleep_after,
                keep_alive,
                reply,
            } => {
                let _ = reply.send(self.configure(env, sleep_after, keep_alive).await);
            }
        }
    }

    /// Refuses what the destroyed cannot do.
    fn usable(&self) -> Result<(), ApiError> {
        match self.record.destroyed_at {
            Some(at) => Err(retired(&self.record.key.path, at)),
            None => Ok(()),
        }
    }

    /// Stores a changed record with its events, then publishes it.
    async fn commit(
        &mut self,
        mut next: SandboxRecord,
        events: Vec<SandboxEvent>,
    ) -> Result<(), ApiError> {
        for event in &events {
            next.projection.fold(event);
        }
        next.offset = self.record.offset + events.len() as u64;
        let offset = self.ports.journal.commit(next.clone(), events).await;
        next.offset = offset.map_err(|error| store_failed(&error.to_string()))?;
        self.record = next;
        self.publish();
        Ok(())
    }

    /// Appends a note. Its loss costs a line of history, so it is only logged.
    async fn note(&mut self, event: SandboxEvent) -> Option<u64> {
        match self
            .ports
            .journal
            .note(self.record.key.clone(), event)
            .await
        {
            Ok(offset) => Some(offset),
            Err(error) => {
                tracing::warn!(%error, "a note was not stored");
                None
            }
        }
    }

    fn noted(&mut self, offset: Option<u64>) {
        if let Some(offset) = offset {
            self.record.offset = self.record.offset.max(offset);
            self.publish();
        }
    }

    fn publish(&self) {
        let record = Arc::new(self.record.clone());
        self.view.send_modify(|view| view.record = record);
    }

    /// The machine ended by itself: its calls hear it, the volume stays dirty
    /// and wins at the next boot.
    async fn exited(&mut self, exit: &Exit) {
        tracing::info!(status = ?exit.status, "the machine ended by itself");
        count(&self.ports.meter.crashes);
        self.gate.close("exited");
        if let Some(running) = self.running.take() {
            self.end_lost(running).await;
        }
    }

    /// Clears a machine away that can be used no more.
    async fn end_lost(&mut self, running: Running) {
        if let Err(error) = running.incarnation.machine.stop().await {
            tracing::error!(%error, "a dead machine was not cleaned away");
        }
        drop(running);
        self.lost().await;
    }

    /// Stores that the machine on record is gone.
    pub(crate) async fn lost(&mut self) {
        let mut next = self.record.clone();
        next.boot = None;
        if let Err(error) = self.commit(next, vec![SandboxEvent::Stopped {}]).await {
            // The record is corrected by the next server at the latest.
            tracing::error!(%error, "the end of a machine was not stored");
            self.record.boot = None;
        }
    }
}

/// What a failpoint's error is to the caller of a step.
pub(crate) fn injected(error: hutch_failpoint::Injected) -> ApiError {
    store_failed(&error.to_string())
}

pub(crate) fn store_failed(cause: &str) -> ApiError {
    ApiError::new(
        ErrorCode::InternalError,
        format!("the server could not store the change: {cause}"),
    )
}
