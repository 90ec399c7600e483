//! Doing a plan: many calls at once, and servers that die under them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hutch_e2e::{Api, Hutch, left_over, wait_until};
use rustix::process::Signal;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::daemon;
use crate::history::{Entry, Life, Moment, Outcome};
use crate::plan::{CLIENTS, Op, Plan, Step};
use crate::step::{Shared, events, perform};

/// Calls that are open at once.
const OPEN: usize = 12;
/// Longest time for one call; more is a call that hangs.
const LIMIT: Duration = Duration::from_secs(60);

struct World {
    hutch: Hutch,
    apis: Vec<Arc<Api>>,
    shared: Arc<Shared>,
    clock: Arc<AtomicU64>,
    entries: Arc<Mutex<Vec<Entry>>>,
    gaps: Vec<(Moment, Moment)>,
    open: Arc<Semaphore>,
    /// The last call of each client on each sandbox.
    lanes: HashMap<(usize, usize), JoinHandle<()>>,
}

/// Does a plan, ends everything, and gives what happened to each sandbox.
pub async fn run(plan: &Plan) -> Vec<Life> {
    let hutch = Hutch::start();
    let shared = Shared::of(hutch.data_dir());
    let mut world = World {
        hutch,
        apis: Vec::new(),
        shared: Arc::new(shared),
        clock: Arc::new(AtomicU64::new(1)),
        entries: Arc::default(),
        gaps: Vec::new(),
        open: Arc::new(Semaphore::new(OPEN)),
        lanes: HashMap::new(),
    };
    world.connect().await;
    for step in &plan.steps {
        match step.op {
            Op::KillServer(after) => world.kill_server(after).await,
            _ => world.send(step.clone()).await,
        }
    }
    world.settle().await;
    // A last look at each, with nothing else going on.
    let mut names = BTreeMap::new();
    for (index, step) in plan
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| step.op == Op::Create)
    {
        names.insert(step.name(), step.clone());
        let number = plan.steps.len() + index;
        world
            .send(Step {
                op: Op::Look,
                number,
                ..step.clone()
            })
            .await;
        world.settle().await;
    }
    world.finish(names).await
}

impl World {
    fn tick(&self) -> Moment {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    async fn connect(&mut self) {
        self.apis.clear();
        for _ in 0..CLIENTS {
            self.apis.push(Arc::new(self.hutch.api().await));
        }
    }

    /// Sends a step once its client's last call on that sandbox is over.
    async fn send(&mut self, step: Step) {
        let lane = (step.slot, step.client);
        if let Some(before) = self.lanes.remove(&lane) {
            before.await.unwrap();
        }
        let permit = Arc::clone(&self.open).acquire_owned().await.unwrap();
        let (api, shared) = (
            Arc::clone(&self.apis[step.client]),
            Arc::clone(&self.shared),
        );
        let (clock, entries) = (Arc::clone(&self.clock), Arc::clone(&self.entries));
        let call = async move {
            let begun = clock.fetch_add(1, Ordering::SeqCst);
            let outcome = timeout(LIMIT, perform(&step, &api, &shared)).await;
            let outcome =
                outcome.unwrap_or_else(|_| Outcome::Absurd(format!("no answer within {LIMIT:?}")));
            let ended = clock.fetch_add(1, Ordering::SeqCst);
            entries.lock().unwrap().push(Entry {
                step,
                begun,
                ended,
                outcome,
            });
            drop(permit);
        };
        self.lanes.insert(lane, tokio::spawn(call));
    }

    async fn settle(&mut self) {
        for (_, call) in self.lanes.drain() {
            call.await.unwrap();
        }
    }

    /// Kills the server under its calls and starts the next one.
    async fn kill_server(&mut self, after: Duration) {
        tokio::time::sleep(after).await;
        let begun = self.tick();
        tokio::task::block_in_place(|| self.hutch.end(Signal::KILL));
        self.settle().await;
        tokio::task::block_in_place(|| self.hutch.serve());
        self.connect().await;
        let ended = self.tick();
        self.gaps.push((begun, ended));
        // What was open may have been done until now.
        let mut again = Vec::new();
        for entry in self.entries.lock().unwrap().iter_mut() {
            if matches!(entry.outcome, Outcome::Lost) && entry.ended > begun {
                entry.ended = ended;
                again.extend((entry.step.op == Op::Create).then(|| entry.step.clone()));
            }
        }
        // The same create again finishes what the first began.
        for step in again {
            self.send(step).await;
        }
        self.settle().await;
    }

    async fn finish(mut self, names: BTreeMap<String, Step>) -> Vec<Life> {
        let entries = std::mem::take(&mut *self.entries.lock().unwrap());
        let mut lives = Vec::new();
        let api = Arc::clone(&self.apis[0]);
        for name in names.keys() {
            let mut mine: Vec<_> = entries
                .iter()
                .filter(|entry| entry.step.name() == *name)
                .cloned()
                .collect();
            mine.sort_by_key(|entry| entry.begun);
            let last = api.sandbox(name).json("describe", &[]).await;
            let life = Life {
                name: name.clone(),
                entries: mine,
                events: events(&api, name).await,
                gaps: self.gaps.clone(),
                last,
                kept: daemon::kept_of(&self.hutch.data_dir(), name),
            };
            lives.push(life);
        }
        drop(api);
        self.apis.clear();
        let destroyed = self.hutch.cli(&["sandbox", "destroy", "--all", "--yes"]);
        assert!(
            destroyed.status.success(),
            "{}",
            String::from_utf8_lossy(&destroyed.stderr)
        );
        self.hutch.end(Signal::TERM);
        let mut left = BTreeSet::new();
        wait_until("nothing is left over", || {
            left = left_over(&self.hutch).into_iter().collect();
            left.is_empty()
        });
        for name in names.keys() {
            assert_eq!(daemon::kept_of(&self.hutch.data_dir(), name), [""; 0]);
        }
        lives
    }
}
