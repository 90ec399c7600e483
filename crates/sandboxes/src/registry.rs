//! All sandboxes of a data directory: who exists, and the actors of those in
//! use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hutch_failpoint::failpoint;
use hutch_protocol::event::CreateRequested;
use hutch_protocol::{
    ApiError, CreateInput, ErrorCode, InstanceType, ProjectId, SandboxPath, Status, Timestamp,
};
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::actor::{Actor, Ports, store_failed};
use crate::claim::{birth_events, exists, not_found, pending, retired};
use crate::metrics::{Meter, Metrics, count};
use crate::ports::{BirthOutcome, Journal, Machine, MachineLog, Machines, Workspaces};
use crate::record::{SandboxKey, SandboxRecord};
use crate::recovery::{end, reached};
use crate::sandbox::Sandbox;
use crate::settings::Settings;
use crate::slots::Slots;

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedSandbox {
    /// The path.
    pub path: SandboxPath,
    /// Where it is in its life.
    pub status: Status,
    /// The size.
    pub instance_type: InstanceType,
    /// When it was created.
    pub created_at: Timestamp,
}

/// The sandboxes of one data directory.
pub struct Sandboxes {
    ports: Arc<Ports>,
    settings: Arc<Settings>,
    actors: Mutex<HashMap<SandboxKey, Sandbox>>,
    tasks: TaskTracker,
}

impl Sandboxes {
    /// A registry on the given ports.
    #[must_use]
    pub fn new(
        journal: Arc<dyn Journal>,
        machines: Arc<dyn Machines>,
        workspaces: Arc<dyn Workspaces>,
        settings: Settings,
    ) -> Self {
        Self {
            ports: Arc::new(Ports {
                journal,
                machines,
                workspaces,
                slots: Slots::new(settings.max_instances.clone()),
                meter: Meter::default(),
            }),
            settings: Arc::new(settings),
            actors: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Creates a sandbox. Of racing calls exactly one succeeds.
    ///
    /// # Errors
    /// `SANDBOX_ALREADY_EXISTS`, `SANDBOX_NAME_RETIRED`, or
    /// `SANDBOX_CREATE_PENDING` if an unfinished claim differs.
    pub async fn create(
        &self,
        project: &ProjectId,
        path: &SandboxPath,
        input: CreateInput,
    ) -> Result<Sandbox, ApiError> {
        let key = SandboxKey {
            project: project.clone(),
            path: path.clone(),
        };
        let journal = &self.ports.journal;
        if let Some(record) = self.record(&key).await? {
            return Err(taken(&record));
        }
        let claim = journal.claim(project.clone(), path.clone()).await;
        if let Some(claim) = claim.map_err(|error| store_failed(&error.to_string()))?
            && claim.input != input
        {
            // It may have been finished since we looked.
            return Err(match self.record(&key).await? {
                Some(record) => taken(&record),
                None => pending(&claim, Some(&input)),
            });
        }
        let events = birth_events(&input);
        let mut record = SandboxRecord::born(key.clone(), &input, Timestamp::now());
        for event in &events {
            record.projection.fold(event);
        }
        record.offset = events.len() as u64;
        let claim = CreateRequested {
            path: path.clone(),
            input,
        };
        let outcome = journal.birth(claim, events, record.clone()).await;
        match outcome.map_err(|error| store_failed(&error.to_string()))? {
            BirthOutcome::Born(offset) => {
                record.offset = offset;
                failpoint!("create.born").map_err(|error| store_failed(&error.to_string()))?;
                Ok(self.spawn(record, None))
            }
            BirthOutcome::Taken => Err(match self.record(&key).await? {
                Some(record) => taken(&record),
                None => exists(path),
            }),
        }
    }

    /// The sandbox at a path, destroyed ones included.
    ///
    /// # Errors
    /// `SANDBOX_NOT_FOUND`, or `SANDBOX_CREATE_PENDING`.
    pub async fn find(&self, project: &ProjectId, path: &SandboxPath) -> Result<Sandbox, ApiError> {
        let key = SandboxKey {
            project: project.clone(),
            path: path.clone(),
        };
        if let Some(sandbox) = self.actor(&key) {
            return Ok(sandbox);
        }
        if let Some(record) = self.record(&key).await? {
            return Ok(self.spawn(record, None));
        }
        let claim = self
            .ports
            .journal
            .claim(project.clone(), path.clone())
            .await;
        match claim.map_err(|error| store_failed(&error.to_string()))? {
            Some(claim) => Err(pending(&claim, None)),
            None => Err(not_found(path)),
        }
    }

    /// The sandbox at a path, if it can still be used.
    ///
    /// # Errors
    /// As [`Self::find`], and `SANDBOX_NAME_RETIRED`.
    pub async fn find_usable(
        &self,
        project: &ProjectId,
        path: &SandboxPath,
    ) -> Result<Sandbox, ApiError> {
        let sandbox = self.find(project, path).await?;
        match sandbox.view.borrow().record.destroyed_at {
            Some(at) => Err(retired(path, at)),
            None => Ok(()),
        }?;
        Ok(sandbox)
    }

    /// All sandboxes of a project, destroyed ones included, by path.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn list(&self, project: &ProjectId) -> Result<Vec<ListedSandbox>, ApiError> {
        let records = self.ports.journal.records(Some(project.clone())).await;
        let records = records.map_err(|error| store_failed(&error.to_string()))?;
        let mut listed: Vec<_> = records
            .into_iter()
            .map(|record| ListedSandbox {
                path: record.key.path,
                status: record.projection.status.unwrap_or(Status::Created),
                instance_type: record.instance_type,
                created_at: record.created_at,
            })
            .collect();
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listed)
    }

    /// The last `most` bytes that a sandbox's machines and their daemons wrote.
    /// Asks no actor: it answers while a boot hangs.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn log(&self, key: &SandboxKey, most: usize) -> Result<MachineLog, ApiError> {
        let log = self.ports.machines.log(key.clone(), most).await;
        log.map_err(|error| ApiError::new(ErrorCode::FilesystemError, error.to_string()))
    }

    /// Takes over what an earlier server left: a machine is adopted only if
    /// its whole identity is the one on record, every other one is ended, and
    /// a record whose machine is gone is told so. Run once, before any call.
    ///
    /// # Errors
    /// If the store or the driver cannot be read. Single machines that fail
    /// are ended and logged.
    pub async fn recover(&self) -> Result<(), ApiError> {
        let records = self.records().await?;
        let mut machines: HashMap<SandboxKey, Vec<Arc<dyn Machine>>> = HashMap::new();
        match self.ports.machines.running().await {
            Ok(running) => {
                for machine in running {
                    machines
                        .entry(machine.key().clone())
                        .or_default()
                        .push(machine);
                }
            }
            Err(error) => tracing::warn!(%error, "no machines to adopt"),
        }
        let _ = failpoint!("adopt.listed");
        for record in records {
            let found = machines.remove(&record.key).unwrap_or_default();
            self.recover_one(record, found).await;
        }
        for machine in machines.into_values().flatten() {
            tracing::warn!(sandbox = %machine.key(), boot = %machine.boot(), "ended a machine that no record knows");
            end(&machine).await;
        }
        Ok(())
    }

    async fn recover_one(&self, record: SandboxRecord, found: Vec<Arc<dyn Machine>>) {
        let mut adopted = None;
        for machine in found {
            let known = record.boot.as_ref().is_some_and(|boot| {
                boot.boot == machine.boot()
                    && boot.identity == machine.identity()
                    && record.destroyed_at.is_none()
            });
            if known && adopted.is_none() && reached(&machine).await {
                let _ = failpoint!("adopt.connected");
                tracing::info!(sandbox = %record.key, boot = %machine.boot(), "adopted");
                adopted = Some(machine);
            } else {
                tracing::warn!(sandbox = %record.key, boot = %machine.boot(), "ended a machine that is not the one on record");
                end(&machine).await;
            }
        }
        if adopted.is_some() || record.boot.is_some() {
            // Read alone, the record knows its stream's true last offset.
            let record = self
                .record(&record.key)
                .await
                .ok()
                .flatten()
                .unwrap_or(record);
            if let Some(machine) = &adopted {
                self.hand_over(machine, &record).await;
            }
            self.spawn(record, adopted);
        }
    }

    /// The records of all sandboxes, destroyed ones included, in no order.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn records(&self) -> Result<Vec<SandboxRecord>, ApiError> {
        let records = self.ports.journal.records(None).await;
        records.map_err(|error| store_failed(&error.to_string()))
    }

    /// Drops the log of a destroyed sandbox. No log is as good.
    pub async fn forget(&self, key: SandboxKey) {
        if let Err(error) = self.ports.machines.forget(key).await {
            tracing::warn!(%error, "the log of a destroyed sandbox was left");
        }
    }

    /// Numbers for those who watch this server.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn metrics(&self) -> Result<Metrics, ApiError> {
        let records = self.records().await?;
        let all = [
            Status::Created,
            Status::Running,
            Status::Stopped,
            Status::Destroyed,
        ];
        let count = |status: Status| {
            let of = |record: &&SandboxRecord| {
                record.projection.status.unwrap_or(Status::Created) == status
            };
            records.iter().filter(of).count() as u64
        };
        Ok(Metrics {
            sandboxes: all
                .into_iter()
                .map(|status| (status, count(status)))
                .collect(),
            instances: self.ports.slots.usage(),
            ..self.ports.meter.read()
        })
    }

    /// Waits for the actors to end, once every handle is gone.
    pub async fn shut_down(&self) {
        self.actors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn record(&self, key: &SandboxKey) -> Result<Option<SandboxRecord>, ApiError> {
        let record = self.ports.journal.record(key.clone()).await;
        record.map_err(|error| store_failed(&error.to_string()))
    }

    fn actor(&self, key: &SandboxKey) -> Option<Sandbox> {
        let actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        actors.get(key).cloned()
    }

    /// The last server may have stored a change of the environment and died
    /// before the machine had it.
    async fn hand_over(&self, machine: &Arc<dyn Machine>, record: &SandboxRecord) {
        let configured = machine.configure(record.env.clone());
        let configured = timeout(self.settings.control_deadline, configured).await;
        if !matches!(configured, Ok(Ok(()))) {
            tracing::warn!(sandbox = %record.key, "an adopted machine did not take its environment");
        }
    }

    /// Starts the actor of a record, unless somebody was faster.
    fn spawn(&self, record: SandboxRecord, machine: Option<Arc<dyn Machine>>) -> Sandbox {
        let mut actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sandbox) = actors.get(&record.key) {
            return sandbox.clone();
        }
        let (key, size) = (record.key.clone(), record.instance_type);
        let lost_its_machine = record.boot.is_some() && machine.is_none();
        let (commands, inbox) = mpsc::channel(self.settings.waiting_calls);
        let (mut actor, gate, view) = Actor::new(
            Arc::clone(&self.ports),
            Arc::clone(&self.settings),
            record,
            inbox,
        );
        if let Some(machine) = machine {
            count(&self.ports.meter.adopted);
            let slot = self.ports.slots.take_over(size);
            actor.run_with(machine, slot);
        }
        self.tasks.spawn(async move {
            if lost_its_machine {
                actor.lost().await;
            }
            actor.run().await;
        });
        let settings = Arc::clone(&self.settings);
        let sandbox = Sandbox {
            key: key.clone(),
            commands,
            gate,
            view,
            followers: Arc::new(Semaphore::new(settings.followers)),
            settings,
        };
        actors.insert(key, sandbox.clone());
        sandbox
    }
}

fn taken(record: &SandboxRecord) -> ApiError {
    match record.destroyed_at {
        Some(at) => retired(&record.key.path, at),
        None => exists(&record.key.path),
    }
}
