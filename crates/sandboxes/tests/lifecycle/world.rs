//! In-memory ports with switches for each failure.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capnweb::{ErrorValue, Stub};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hutch_protocol::event::{CreateRequested, SandboxEvent};
use hutch_protocol::{BackupId, BootId, CreateInput, EnvMap, ProjectId, SandboxPath};
use hutch_sandboxes::ports::*;
use hutch_sandboxes::{BackupHandle, Sandbox, SandboxKey, SandboxRecord, Sandboxes, Settings};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

#[derive(Default)]
pub struct Store {
    pub claims: HashMap<SandboxPath, CreateRequested>,
    pub records: HashMap<SandboxPath, SandboxRecord>,
    pub events: HashMap<SandboxPath, Vec<SandboxEvent>>,
}

#[derive(Default)]
pub struct World {
    pub store: Mutex<Store>,
    pub starts: AtomicUsize,
    pub live: Mutex<Vec<Arc<FakeMachine>>>,
    pub fail_start: AtomicBool,
    pub fail_keep: AtomicBool,
    pub fail_restore: AtomicBool,
    pub hold_starts: AtomicBool,
    pub hold_freezes: AtomicBool,
    pub start_gate: Notify,
    pub kept: Mutex<Vec<BackupId>>,
    pub cpu_per_question: AtomicU64,
    pub hold_awake: AtomicBool,
    pub grew: Notify,
}

pub struct FakeMachine {
    pub boot: BootId,
    pub key: SandboxKey,
    pub dead: watch::Sender<bool>,
    pub env: Mutex<EnvMap>,
    pub world: Arc<World>,
    pub cpu: AtomicU64,
    /// Whether a freeze waits to be let go on.
    pub hold_freeze: AtomicBool,
    pub freezing: Notify,
    pub freeze_gate: Notify,
    pub thaws: AtomicUsize,
}

impl World {
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    pub fn sandboxes(self: &Arc<Self>) -> Sandboxes {
        self.sandboxes_with(Settings::default())
    }

    pub fn sandboxes_with(self: &Arc<Self>, settings: Settings) -> Sandboxes {
        Sandboxes::new(self.clone(), self.clone(), self.clone(), settings)
    }

    pub fn types(&self, path: &SandboxPath) -> Vec<String> {
        let store = self.store.lock().unwrap();
        let events = store
            .events
            .get(path)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let name = |event: &SandboxEvent| event.to_parts().unwrap().0.replace("sandbox/", "");
        events.iter().map(name).collect()
    }

    pub fn count(&self, path: &SandboxPath, name: &str) -> usize {
        self.types(path)
            .iter()
            .filter(|known| *known == name)
            .count()
    }

    /// Waits, without a clock, until a stream has so many events of a type.
    pub async fn until(&self, path: &SandboxPath, name: &str, count: usize) {
        loop {
            let grew = self.grew.notified();
            if self.count(path, name) >= count {
                return;
            }
            grew.await;
        }
    }

    pub fn machine(&self) -> Arc<FakeMachine> {
        self.live.lock().unwrap().last().unwrap().clone()
    }

    fn append(&self, path: &SandboxPath, events: Vec<SandboxEvent>) -> u64 {
        let mut store = self.store.lock().unwrap();
        let stream = store.events.entry(path.clone()).or_default();
        stream.extend(events);
        let offset = stream.len() as u64;
        drop(store);
        self.grew.notify_waiters();
        offset
    }
}

pub fn project() -> ProjectId {
    "prj_0123456789abcdef0123456789abcdef".parse().unwrap()
}

pub fn path(name: &str) -> SandboxPath {
    format!("/sandboxes/{name}").parse().unwrap()
}

pub async fn create(sandboxes: &Sandboxes, name: &str, input: CreateInput) -> Sandbox {
    let created = sandboxes.create(&project(), &path(name), input).await;
    created.unwrap()
}

pub async fn born(world: &Arc<World>, sandboxes: &Sandboxes, name: &str) -> (Sandbox, SandboxPath) {
    let _ = world;
    let path = path(name);
    let sandbox = sandboxes
        .create(&project(), &path, CreateInput::default())
        .await
        .unwrap();
    (sandbox, path)
}

impl Journal for World {
    fn birth(
        &self,
        claim: CreateRequested,
        events: Vec<SandboxEvent>,
        record: SandboxRecord,
    ) -> BoxFuture<'_, Result<BirthOutcome, JournalError>> {
        async move {
            let path = claim.path.clone();
            {
                let mut store = self.store.lock().unwrap();
                let foreign = store.claims.get(&path).is_some_and(|known| *known != claim);
                if foreign || store.records.contains_key(&path) {
                    return Ok(BirthOutcome::Taken);
                }
                store.claims.insert(path.clone(), claim);
                store.records.insert(path.clone(), record);
            }
            Ok(BirthOutcome::Born(self.append(&path, events)))
        }
        .boxed()
    }

    fn claim(
        &self,
        _: ProjectId,
        path: SandboxPath,
    ) -> BoxFuture<'_, Result<Option<CreateRequested>, JournalError>> {
        async move { Ok(self.store.lock().unwrap().claims.get(&path).cloned()) }.boxed()
    }

    fn commit(
        &self,
        record: SandboxRecord,
        events: Vec<SandboxEvent>,
    ) -> BoxFuture<'_, Result<u64, JournalError>> {
        async move {
            let path = record.key.path.clone();
            self.store
                .lock()
                .unwrap()
                .records
                .insert(path.clone(), record);
            Ok(self.append(&path, events))
        }
        .boxed()
    }

    fn note(
        &self,
        key: SandboxKey,
        event: SandboxEvent,
    ) -> BoxFuture<'_, Result<u64, JournalError>> {
        async move { Ok(self.append(&key.path, vec![event])) }.boxed()
    }

    fn record(
        &self,
        key: SandboxKey,
    ) -> BoxFuture<'_, Result<Option<SandboxRecord>, JournalError>> {
        async move { Ok(self.store.lock().unwrap().records.get(&key.path).cloned()) }.boxed()
    }

    fn records(
        &self,
        _: Option<ProjectId>,
    ) -> BoxFuture<'_, Result<Vec<SandboxRecord>, JournalError>> {
        async move {
            Ok(self
                .store
                .lock()
                .unwrap()
                .records
                .values()
                .cloned()
                .collect())
        }
        .boxed()
    }
}

impl Machines for World {
    fn start(&self, spec: MachineSpec) -> BoxFuture<'_, Result<Arc<dyn Machine>, MachineError>> {
        async move {
            self.starts.fetch_add(1, Ordering::SeqCst);
            if self.hold_starts.load(Ordering::SeqCst) {
                self.start_gate.notified().await;
            }
            if self.fail_start.load(Ordering::SeqCst) {
                return Err(MachineError::Failed("no luck".into()));
            }
            let world = Arc::new(Self::default());
            world.cpu_per_question.store(
                self.cpu_per_question.load(Ordering::SeqCst),
                Ordering::SeqCst,
            );
            let machine = Arc::new(FakeMachine {
                boot: spec.boot,
                key: spec.key,
                dead: watch::Sender::new(false),
                env: Mutex::default(),
                world,
                cpu: AtomicU64::new(0),
                hold_freeze: AtomicBool::new(self.hold_freezes.load(Ordering::SeqCst)),
                freezing: Notify::new(),
                freeze_gate: Notify::new(),
                thaws: AtomicUsize::new(0),
            });
            self.live.lock().unwrap().push(machine.clone());
            Ok(machine as Arc<dyn Machine>)
        }
        .boxed()
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<Arc<dyn Machine>>, MachineError>> {
        let live = self.live.lock().unwrap();
        let live = live.iter().filter(|machine| !*machine.dead.borrow());
        let live = live
            .map(|machine| machine.clone() as Arc<dyn Machine>)
            .collect();
        async move { Ok(live) }.boxed()
    }
}

impl Machine for FakeMachine {
    fn boot(&self) -> BootId {
        self.boot
    }

    fn key(&self) -> &SandboxKey {
        &self.key
    }

    fn identity(&self) -> Value {
        json!({ "boot": self.boot.to_string() })
    }

    fn user(&self) -> Stub {
        Stub::rejected(ErrorValue::new("Error", "a test double"))
    }

    fn configure(&self, env: EnvMap) -> BoxFuture<'_, Result<(), MachineError>> {
        *self.env.lock().unwrap() = env;
        async { Ok(()) }.boxed()
    }

    fn held_awake(&self) -> BoxFuture<'_, Result<bool, MachineError>> {
        let held = self.world.hold_awake.load(Ordering::SeqCst);
        async move { Ok(held) }.boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), MachineError>> {
        async { Ok(()) }.boxed()
    }

    fn freeze(&self, _: Duration) -> BoxFuture<'_, Result<(), MachineError>> {
        async {
            if self.hold_freeze.load(Ordering::SeqCst) {
                self.freezing.notify_one();
                self.freeze_gate.notified().await;
            }
            Ok(())
        }
        .boxed()
    }

    fn thaw(&self) -> BoxFuture<'_, Result<(), MachineError>> {
        self.thaws.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }.boxed()
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), MachineError>> {
        self.dead.send_replace(true);
        async { Ok(()) }.boxed()
    }

    fn exited(&self) -> BoxFuture<'static, Exit> {
        let mut dead = self.dead.subscribe();
        async move {
            let _ = dead.wait_for(|dead| *dead).await;
            Exit { status: Some(0) }
        }
        .boxed()
    }

    fn usage(&self) -> BoxFuture<'_, Result<Usage, MachineError>> {
        let step = self.world.cpu_per_question.load(Ordering::SeqCst);
        let millis = self.cpu.fetch_add(step, Ordering::SeqCst);
        let usage = Usage {
            cpu: Duration::from_millis(millis),
            oom_kills: 0,
        };
        async move { Ok(usage) }.boxed()
    }
}

impl Workspaces for World {
    fn prepare(
        &self,
        key: SandboxKey,
        backup: Option<BackupHandle>,
    ) -> BoxFuture<'_, Result<Prepared, WorkspaceError>> {
        async move {
            if self.fail_restore.load(Ordering::SeqCst) && backup.is_some() {
                return Err(WorkspaceError("the archive is damaged".into()));
            }
            let source = backup.map_or(Source::Fresh, |_| Source::Live);
            Ok(Prepared {
                volume: PathBuf::from(format!("/volumes/{}", key.path.name())),
                source,
            })
        }
        .boxed()
    }

    fn keep(&self, _: SandboxKey) -> BoxFuture<'_, Result<BackupId, WorkspaceError>> {
        async move {
            if self.fail_keep.load(Ordering::SeqCst) {
                return Err(WorkspaceError("the disk is full".into()));
            }
            let id = BackupId::random();
            self.kept.lock().unwrap().push(id);
            Ok(id)
        }
        .boxed()
    }

    fn settle(
        &self,
        _: SandboxKey,
        _: BackupHandle,
        _: Option<BackupId>,
    ) -> BoxFuture<'_, Result<(), WorkspaceError>> {
        async { Ok(()) }.boxed()
    }

    fn discard(&self, _: SandboxKey) -> BoxFuture<'_, Result<(), WorkspaceError>> {
        async { Ok(()) }.boxed()
    }

    fn delete(
        &self,
        _: SandboxKey,
        _: Option<BackupId>,
    ) -> BoxFuture<'_, Result<(), WorkspaceError>> {
        async { Ok(()) }.boxed()
    }
}
