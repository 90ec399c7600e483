//! Deaths and failures between any two durable steps. The server, or its
//! spawner, dies at a point that a test armed; the next one has to put
//! everything in order.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hutch_e2e::{Handle, Hutch, left_over, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// What is done while a point is armed, and what was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    /// Of a new name.
    Create,
    /// The first start ever.
    FirstStart,
    /// A start after sleep.
    Start,
    /// A start after sleep, on a host that has lost the volume.
    Restore,
    /// Sleep after an earlier sleep.
    Sleep,
    Restart,
    /// Start and sleep.
    Cycle,
    Destroy,
    /// Nothing: the server that takes over is the one that is armed.
    Adopt,
    /// The same, and the machine on record is not the one that runs.
    Disown,
}

const KILL: &str = "kill";
const ERROR: &str = "error";

/// Each failpoint of the sources with what reaches it.
const CASES: &[(&str, Verb, &[&str])] = &[
    ("create.born", Verb::Create, &[KILL, ERROR]),
    ("volume.made", Verb::FirstStart, &[KILL]),
    ("volume.filled", Verb::FirstStart, &[KILL, ERROR]),
    ("volume.drafted", Verb::Start, &[KILL]),
    ("start.requested", Verb::Start, &[KILL]),
    ("start.prepared", Verb::Start, &[KILL, ERROR]),
    ("start.booted", Verb::Start, &[KILL, ERROR]),
    ("start.committed", Verb::Start, &[KILL, ERROR]),
    ("restore.made", Verb::Restore, &[KILL, ERROR]),
    ("restore.unpacked", Verb::Restore, &[KILL, ERROR]),
    ("sleep.requested", Verb::Sleep, &[KILL]),
    ("sleep.frozen", Verb::Sleep, &[KILL]),
    ("sleep.stopped", Verb::Sleep, &[KILL, ERROR]),
    ("snapshot.packed", Verb::Sleep, &[KILL]),
    ("snapshot.described", Verb::Sleep, &[KILL]),
    ("snapshot.checked", Verb::Sleep, &[KILL, ERROR]),
    ("snapshot.layered", Verb::Sleep, &[KILL, ERROR]),
    ("snapshot.published", Verb::Sleep, &[KILL, ERROR]),
    ("sleep.archived", Verb::Sleep, &[KILL]),
    ("sleep.committed", Verb::Sleep, &[KILL, ERROR]),
    ("volume.stripping", Verb::Sleep, &[KILL, ERROR]),
    ("sleep.stripped", Verb::Sleep, &[KILL]),
    ("sleep.settled", Verb::Sleep, &[KILL, ERROR]),
    ("snapshot.doomed", Verb::Sleep, &[KILL]),
    ("restart.slept", Verb::Restart, &[KILL, ERROR]),
    ("destroy.requested", Verb::Destroy, &[KILL, ERROR]),
    ("destroy.stopped", Verb::Destroy, &[KILL, ERROR]),
    ("destroy.committed", Verb::Destroy, &[KILL, ERROR]),
    ("volume.removed", Verb::Destroy, &[KILL]),
    ("destroy.deleted", Verb::Destroy, &[KILL, ERROR]),
    ("destroy.swept", Verb::Destroy, &[KILL, ERROR]),
    ("adopt.listed", Verb::Adopt, &[KILL]),
    ("adopt.connected", Verb::Adopt, &[KILL]),
    ("adopt.ended", Verb::Disown, &[KILL]),
    ("spawner.grouped", Verb::FirstStart, &[KILL, ERROR]),
    ("spawner.forked", Verb::FirstStart, &[KILL]),
    ("spawner.limited", Verb::FirstStart, &[KILL, ERROR]),
    ("spawner.sent", Verb::FirstStart, &[KILL]),
    ("spawner.killed", Verb::Cycle, &[KILL]),
    ("spawner.ungrouped", Verb::Cycle, &[KILL]),
];

fn sources(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let uses = text.split("failpoint!(\"").skip(1);
            found.extend(uses.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
}

#[test]
fn every_failpoint_has_a_case() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(crates).unwrap().flatten() {
        if entry.file_name() != "failpoint" {
            sources(&entry.path().join("src"), &mut found);
        }
    }
    let cases: BTreeSet<String> = CASES.iter().map(|case| case.0.to_owned()).collect();
    assert_eq!(found, cases);
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may be gone already.
    let _ = kill_process(pid, Signal::KILL);
}

/// One server on which case after case is run.
struct Bench {
    hutch: Hutch,
    round: usize,
}

impl Bench {
    fn start() -> Self {
        let hutch = Hutch::start();
        Self { hutch, round: 0 }
    }

    /// Makes a sandbox that is where the verb finds it.
    async fn prepare(&self, name: &str, verb: Verb) {
        let api = self.hutch.api().await;
        if verb == Verb::Create {
            return;
        }
        let sandbox = api.create(name, json!({"instanceType": "lite"})).await;
        if verb == Verb::FirstStart {
            return;
        }
        sandbox.sh("echo first > f").await;
        sandbox.json("sleep", &[]).await;
        if matches!(
            verb,
            Verb::Start | Verb::Restore | Verb::Disown | Verb::Cycle
        ) {
            return;
        }
        sandbox.sh("echo second > g").await;
    }

    fn before_arming(&self, name: &str, verb: Verb) {
        if verb == Verb::Restore {
            for project in fs::read_dir(self.hutch.data_dir().join("volumes")).unwrap() {
                let _ = fs::remove_dir_all(project.unwrap().path().join(name));
            }
        }
    }

    /// Does the verb; repeated, it may find that it was done.
    async fn act(&self, name: &str, verb: Verb, repeated: bool) -> Result<(), String> {
        let api = self.hutch.api().await;
        let sandbox = api.sandbox(name);
        let method = match verb {
            Verb::Create => "create",
            Verb::FirstStart | Verb::Start | Verb::Restore => "start",
            Verb::Sleep => "sleep",
            Verb::Restart => "restart",
            Verb::Cycle => "sleep",
            Verb::Destroy => "destroy",
            Verb::Adopt | Verb::Disown => return Ok(()),
        };
        if verb == Verb::Cycle {
            let started = sandbox.call("start", &[]).await;
            started.map_err(|error| hutch_e2e::message(&error))?;
        }
        match sandbox.call(method, &[]).await {
            Ok(_) => Ok(()),
            Err(error) if repeated && error.code() == Some("SANDBOX_ALREADY_EXISTS") => Ok(()),
            Err(error) => Err(hutch_e2e::message(&error)),
        }
    }

    async fn run(&mut self, point: &str, verb: Verb, action: &str) {
        self.round += 1;
        let name = format!("c{}", self.round);
        let what = format!("{point}={action}");
        self.prepare(&name, verb).await;
        self.hutch.end(Signal::TERM);
        if verb == Verb::Disown {
            self.leave_a_stranger(&name).await;
        }
        self.before_arming(&name, verb);
        let hits = self.hutch.data_dir().with_extension("hits");
        let _ = fs::remove_file(&hits);
        let of_spawner = point.starts_with("spawner.");
        if of_spawner {
            // A spawner that is told of the point has to be a new one.
            let hutch = &self.hutch;
            wait_until("the spawner ends", || hutch.processes().is_empty());
        }
        let armed = [
            ("HUTCH_FAILPOINT", what.as_str()),
            ("HUTCH_FAILPOINT_HITS", hits.to_str().unwrap()),
        ];
        let ready = self.hutch.try_serve(&[], &armed);
        if ready.is_ok() {
            let acting = self.act(&name, verb, false);
            let _ = tokio::time::timeout(Duration::from_secs(30), acting).await;
            if action == KILL && !of_spawner {
                let hutch = &mut self.hutch;
                wait_until(&format!("the server dies at {point}"), || hutch.has_ended());
            }
        }
        let hit = fs::read_to_string(&hits).unwrap_or_default();
        assert!(hit.lines().any(|line| line == point), "{what}: not reached");
        if !self.hutch.has_ended() {
            self.hutch.end(Signal::KILL);
        }
        if of_spawner {
            // One that the armed server started is armed, too.
            self.hutch.processes().into_iter().for_each(kill);
        }
        self.hutch.serve();
        self.check(&name, verb, &what).await;
    }

    async fn check(&self, name: &str, verb: Verb, what: &str) {
        let repeated = self.act(name, verb, true).await;
        repeated.unwrap_or_else(|error| panic!("{what}: not repeated: {error}"));
        let api = self.hutch.api().await;
        let sandbox = api.sandbox(name);
        if verb != Verb::Destroy {
            self.check_contents(&sandbox, verb, what).await;
            sandbox.json("destroy", &[]).await;
        }
        let (code, _) = sandbox.refusal("create", &[]).await;
        assert_eq!(code, "SANDBOX_NAME_RETIRED", "{what}");
        assert_eq!(self.left_of(name), Vec::<String>::new(), "{what}");
    }

    async fn check_contents(&self, sandbox: &Handle, verb: Verb, what: &str) {
        let expected = match verb {
            Verb::Create | Verb::FirstStart => "",
            Verb::Start | Verb::Restore | Verb::Disown | Verb::Cycle => "first\n",
            _ => "first\nsecond\n",
        };
        let (_, found) = sandbox.sh("cat f g 2>/dev/null").await;
        assert_eq!(found, expected, "{what}");
        let described = sandbox.json("describe", &[]).await;
        assert_eq!(described["degraded"], false, "{what}");
        // The next cycle works, too.
        sandbox.json("sleep", &[]).await;
        let (_, found) = sandbox.sh("cat f g 2>/dev/null").await;
        assert_eq!(found, expected, "{what}, after another sleep");
    }

    /// What a destroyed sandbox has left in the data directory.
    fn left_of(&self, name: &str) -> Vec<String> {
        let dir = self.hutch.data_dir();
        let mut left = Vec::new();
        for folder in [
            "snapshots/snapshots",
            "snapshots/layers",
            "snapshots/tmp",
            "logs",
        ] {
            let entries = fs::read_dir(dir.join(folder)).into_iter().flatten();
            let paths = entries.flatten().map(|entry| entry.path());
            left.extend(paths.map(|path| path.display().to_string()));
        }
        for project in fs::read_dir(dir.join("volumes")).unwrap().flatten() {
            let volume = project.path().join(name);
            left.extend(volume.exists().then(|| volume.display().to_string()));
        }
        left
    }

    /// Leaves a machine that no record knows.
    async fn leave_a_stranger(&mut self, name: &str) {
        let armed = [("HUTCH_FAILPOINT", "start.booted=kill")];
        self.hutch.try_serve(&[], &armed).unwrap();
        let _ = self.act(name, Verb::Start, false).await;
        let hutch = &mut self.hutch;
        wait_until("the server dies", || hutch.has_ended());
    }

    /// Nothing is left on the machine once the spawner has ended.
    fn finish(mut self) {
        self.hutch.end(Signal::TERM);
        let hutch = &self.hutch;
        wait_until("the spawner ends", || hutch.processes().is_empty());
        assert_eq!(left_over(&self.hutch), Vec::<String>::new());
    }
}

async fn run_all(select: impl Fn(&str, Verb) -> bool) {
    let mut bench = Bench::start();
    let begun = Instant::now();
    let mut count = 0;
    for (point, verb, actions) in CASES {
        if select(point, *verb) {
            for action in *actions {
                bench.run(point, *verb, action).await;
                count += 1;
            }
        }
    }
    assert!(count > 0);
    let per_case = begun.elapsed() / count;
    assert!(per_case < Duration::from_secs(30), "{per_case:?} a case");
    bench.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_in_create_or_start_converges() {
    let starts = [Verb::Create, Verb::FirstStart, Verb::Start, Verb::Restore];
    run_all(|point, verb| starts.contains(&verb) && !point.starts_with("spawner.")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_in_sleep_or_restart_converges() {
    let sleeps = [Verb::Sleep, Verb::Restart];
    run_all(|point, verb| sleeps.contains(&verb) && !point.starts_with("spawner.")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_in_destroy_or_adoption_converges() {
    let ends = [Verb::Destroy, Verb::Adopt, Verb::Disown];
    run_all(|_, verb| ends.contains(&verb)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_of_the_spawner_converges() {
    run_all(|point, _| point.starts_with("spawner.")).await;
}
