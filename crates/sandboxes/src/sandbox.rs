//! A caller's handle on one sandbox's actor.

use std::sync::Arc;

use hutch_protocol::{ApiError, EnvPatch, ErrorCode, Projection, SleepAfter};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::actor::{Command, View};
use crate::admission::{Admission, Refused, Weight, full};
use crate::describe::{Awake, Description, RuntimeState};
use crate::gate::Gate;
use crate::live::LiveState;
use crate::record::SandboxKey;
use crate::settings::Settings;

/// Options of `start`.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartOptions {
    /// Give up a workspace that cannot be restored, and start empty.
    pub discard_workspace: bool,
}

/// One sandbox. Cheap to clone; dropping the last one does not stop anything.
#[derive(Clone)]
pub struct Sandbox {
    pub(crate) key: SandboxKey,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) view: watch::Receiver<View>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) followers: Arc<Semaphore>,
}

impl Sandbox {
    /// Who this is.
    #[must_use]
    pub fn key(&self) -> &SandboxKey {
        &self.key
    }

    /// Lets a call in, booting first if the sandbox sleeps. All calls that
    /// wait for one boot are let in by it.
    ///
    /// # Errors
    /// Why the sandbox cannot be used or booted.
    pub async fn admit(&self) -> Result<Admission, ApiError> {
        // A sandbox may fall asleep again between its boot and our entering;
        // a few rounds are bad luck, more are a fault.
        for _ in 0..8 {
            match Admission::full(&self.gate) {
                Ok(admission) => return Ok(admission),
                Err(Refused::Asleep) => {}
                Err(Refused::Dozing) => {
                    self.gate.settled().await;
                    continue;
                }
                Err(Refused::Full) => return Err(full(&self.key.path)),
            }
            self.ask(|reply| Command::Wake { reply }).await?;
        }
        Err(ApiError::interrupted(
            "wake",
            "the sandbox keeps falling asleep",
            false,
        ))
    }

    /// Lets a call look at a running sandbox; none if it sleeps.
    #[must_use]
    pub fn peek(&self) -> Option<Admission> {
        Admission::passive(&self.gate)
    }

    /// Lets a call in with the given weight, waking only for [`Weight::Full`].
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub async fn enter(&self, weight: Weight) -> Result<Option<Admission>, ApiError> {
        match weight {
            Weight::Full => self.admit().await.map(Some),
            Weight::Passive => Ok(self.peek()),
        }
    }

    /// Boots now, restoring the workspace if needed. A no-op while it runs.
    ///
    /// # Errors
    /// Why it cannot boot; `BACKUP_RESTORE_FAILED` if the workspace is lost.
    pub async fn start(&self, options: StartOptions) -> Result<(), ApiError> {
        self.ask(|reply| Command::Start { options, reply }).await
    }

    /// Snapshots the workspace and tears the machine down. A no-op while it
    /// sleeps.
    ///
    /// # Errors
    /// `SNAPSHOT_FAILED` after the machine is down; nothing is lost then.
    pub async fn sleep(&self) -> Result<(), ApiError> {
        self.ask(|reply| Command::Sleep { reply }).await
    }

    /// Sleeps and starts as one step: nothing comes between the two. Starts a
    /// sleeper.
    ///
    /// # Errors
    /// Why it cannot boot; `SNAPSHOT_FAILED` if only the snapshot failed, after
    /// it runs again on the disk it had.
    pub async fn restart(&self) -> Result<(), ApiError> {
        self.ask(|reply| Command::Restart { reply }).await
    }

    /// Ends it for good and retires the name. A no-op the second time.
    ///
    /// # Errors
    /// Why the machine could not be ended; the sandbox then lives on.
    pub async fn destroy(&self) -> Result<(), ApiError> {
        self.ask(|reply| Command::Destroy { reply }).await
    }

    /// Changes the durable configuration; absent members stay as they are.
    ///
    /// # Errors
    /// `INVALID_ENV` if the environment would grow too large.
    pub async fn configure(
        &self,
        env: Option<EnvPatch>,
        sleep_after: Option<SleepAfter>,
        keep_alive: Option<bool>,
    ) -> Result<(), ApiError> {
        self.ask(|reply| Command::Configure {
            env,
            sleep_after,
            keep_alive,
            reply,
        })
        .await
    }

    /// What is known without waking it.
    #[must_use]
    pub fn describe(&self) -> Description {
        let view = self.view.borrow().clone();
        let (open, quiet) = self.gate.activity();
        let awake = self.gate.peek().map(|_| {
            let idle_cpu = self.settings.idle_cpu;
            Awake::of(&view, open, quiet, idle_cpu)
        });
        Description::of(&view.record, awake, view.last_boot)
    }

    /// What its actor and its machine do at this moment.
    #[must_use]
    pub fn runtime_state(&self) -> RuntimeState {
        let view = self.view.borrow().clone();
        let described = self.describe();
        RuntimeState {
            offset: view.record.offset,
            step: view.step,
            waiting_calls: self.commands.max_capacity() - self.commands.capacity(),
            boot_id: described.boot_id,
            started_at: described.started_at,
            awake: described.awake,
            last_boot: described.last_boot,
        }
    }

    /// Follows the projection.
    ///
    /// # Errors
    /// `CAPACITY_EXCEEDED` if too many do already.
    pub fn follow(&self) -> Result<LiveState, ApiError> {
        LiveState::new(self.view.clone(), &self.followers)
    }

    /// Waits until the projection includes an offset of the stream; gives the
    /// offset that it includes then.
    ///
    /// # Errors
    /// `SERVICE_NOT_RESPONDING` if it does not within `limit`.
    pub async fn processed(&self, offset: u64, limit: Duration) -> Result<u64, ApiError> {
        let mut view = self.view.clone();
        let folded = view.wait_for(|view| view.record.offset >= offset);
        match tokio::time::timeout(limit, folded).await {
            Ok(Ok(view)) => Ok(view.record.offset),
            Ok(Err(_)) => Err(server_stops(false)),
            Err(_) => {
                let now = self.view.borrow().record.offset;
                let path = &self.key.path;
                let error = ApiError::new(
                    ErrorCode::ServiceNotResponding,
                    format!(
                        "the stream of sandbox {path} has come to offset {now}, not {offset}, within {limit:?}; wait longer or for a lower one"
                    ),
                );
                Err(error.with("offset", now))
            }
        }
    }

    /// The projection and the stream offset that it includes.
    #[must_use]
    pub fn projection(&self) -> (u64, Projection) {
        let view = self.view.borrow();
        (view.record.offset, view.record.projection.clone())
    }

    async fn ask(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<(), ApiError>>) -> Command,
    ) -> Result<(), ApiError> {
        let (reply, answer) = oneshot::channel();
        self.commands
            .try_send(command(reply))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => ApiError::new(
                    ErrorCode::CapacityExceeded,
                    format!(
                        "too many calls wait for sandbox {}; try again shortly",
                        self.key.path
                    ),
                ),
                mpsc::error::TrySendError::Closed(_) => server_stops(false),
            })?;
        answer.await.unwrap_or_else(|_| Err(server_stops(true)))
    }
}

fn server_stops(admitted: bool) -> ApiError {
    ApiError::interrupted("the call", "the server is stopping", admitted)
}
