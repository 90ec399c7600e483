//! A driver of one test's own: data directory, spawner, groups.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hutch_drivers::{
    DirectoryVolumes, Driver, Instance, NativeDriver, NativeOptions, Port, SandboxKey, StartSpec,
    VolumeState, VolumeStore,
};
use hutch_protocol::{BootId, Generation, InstanceType, ProjectId};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The test's spawner and init.
pub const PROBE: &str = env!("CARGO_BIN_EXE_hutch-drivers-probe");

/// How long anything in a test may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Machine {
    pub dir: tempfile::TempDir,
    pub driver: NativeDriver,
    pub volumes: DirectoryVolumes,
    pub project: ProjectId,
}

pub fn options(dir: &Path, generation: u64) -> NativeOptions {
    let mut options = NativeOptions::new(dir, PROBE, Generation(generation));
    options.spawner = vec![PROBE.into(), "spawner".into()];
    // Prepared once for all tests of a build.
    options.image_dir = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("images"));
    options
}

impl Machine {
    pub async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let driver = NativeDriver::connect_or_start(options(dir.path(), 1))
            .await
            .unwrap();
        let volumes = DirectoryVolumes::open(dir.path()).unwrap();
        Self {
            dir,
            driver,
            volumes,
            project: ProjectId::random(),
        }
    }

    pub fn key(&self, name: &str) -> SandboxKey {
        SandboxKey {
            project: self.project.clone(),
            name: name.parse().unwrap(),
        }
    }

    pub fn volume(&self, name: &str) -> PathBuf {
        let key = self.key(name);
        match self.volumes.open(&key) {
            Ok(volume) => volume.path,
            Err(_) => {
                self.volumes
                    .create(&VolumeState::new(key, Generation(1)))
                    .unwrap()
                    .path
            }
        }
    }

    pub fn spec(&self, name: &str, size: InstanceType) -> StartSpec {
        StartSpec {
            boot: BootId::random(),
            sandbox: self.key(name),
            hostname: name.into(),
            instance_type: size,
            volume: self.volume(name),
        }
    }

    pub async fn start(&self, name: &str, size: InstanceType) -> Arc<dyn Instance> {
        match self.driver.start(self.spec(name, size)).await {
            Ok(instance) => instance,
            Err(cause) => panic!(
                "start {name}: {cause}; log: {}",
                std::fs::read_to_string(self.dir.path().join("run/spawner.log"))
                    .unwrap_or_default()
            ),
        }
    }

    pub fn id(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("id")).unwrap()
    }

    /// Ends the driver and waits until its spawner is gone with all it made.
    pub async fn close(self) {
        let Self { dir, driver, .. } = self;
        let id = std::fs::read_to_string(dir.path().join("id")).unwrap();
        for instance in driver.running().await.unwrap() {
            instance.stop().await.unwrap();
        }
        drop(driver);
        wait_until("the spawner is gone", || leftovers(&id).is_empty()).await;
    }
}

/// What on the host carries a data directory's id.
pub fn leftovers(id: &str) -> Vec<String> {
    let mut found = Vec::new();
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        let group = hierarchy.path().join(format!("hutch-{id}"));
        if group.exists() {
            found.push(group.display().to_string());
        }
    }
    let table = std::fs::read_to_string("/run/hutch/uid-ranges").unwrap_or_default();
    found.extend(
        table
            .lines()
            .filter(|line| line.contains(id))
            .map(str::to_owned),
    );
    found
}

/// Kills a process of this test's own.
pub fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

pub fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The spawner of a data directory, by its command line. Prepared boots have
/// the same line; the spawner's parent is none of them.
pub fn spawner_of(dir: &Path) -> Option<i32> {
    let all = spawners_of(dir);
    let parent_of = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let after = stat.rsplit_once(')')?.1.to_owned();
        after.split_whitespace().nth(1)?.parse::<i32>().ok()
    };
    all.iter()
        .find(|pid| !parent_of(pid).is_some_and(|parent| all.contains(&parent)))
        .copied()
}

/// The spawner and its prepared boots.
pub fn spawners_of(dir: &Path) -> Vec<i32> {
    let wanted = format!("\0spawner\0--data-dir\0{}\0", dir.display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
            line.contains(&wanted).then_some(pid)
        })
        .collect()
}

pub async fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs a shell command inside: exit code and output.
pub async fn run(instance: &Arc<dyn Instance>, command: &str) -> (i32, String) {
    run_on(instance, Port::User, command).await
}

/// Runs a shell command as PID 1 does what it wants: not in the commands'
/// groups nor under their filter, beside the daemon's descriptors.
pub async fn as_pid_1(instance: &Arc<dyn Instance>, command: &str) -> (i32, String) {
    run_on(instance, Port::Control, command).await
}

async fn run_on(instance: &Arc<dyn Instance>, port: Port, command: &str) -> (i32, String) {
    let exchange = async {
        let mut peer = instance.connect(port).await.unwrap();
        peer.write_all(format!("{command}\n").as_bytes())
            .await
            .unwrap();
        let mut answer = Vec::new();
        peer.read_to_end(&mut answer).await.unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (code, output) = text.split_once('\n').unwrap_or(("-2", ""));
        (code.parse().unwrap_or(-2), output.to_owned())
    };
    tokio::time::timeout(PATIENCE, exchange)
        .await
        .expect("the command did not answer")
}

/// What PID 1 answers by itself.
pub async fn ping(instance: &Arc<dyn Instance>) -> String {
    let exchange = async {
        let mut peer = instance.connect(Port::Control).await.unwrap();
        peer.write_all(b"\n").await.unwrap();
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.unwrap();
        answer
    };
    tokio::time::timeout(PATIENCE, exchange)
        .await
        .expect("PID 1 did not answer")
}
