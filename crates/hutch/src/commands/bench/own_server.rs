//! A server for the time of one run, with its defaults, in a process of its own.

use crate::{failure::Failure, output, settings::Settings};
use std::{
    io::{BufRead, BufReader},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// More sandboxes than any measurement has at once.
const FLEET: usize = 250;
/// Longest wait for the server to answer.
const START: Duration = Duration::from_secs(30);
/// Longest wait for the server to stop, and then for its directory to be free.
const STOP: Duration = Duration::from_secs(30);

/// A running server and its directory.
pub struct OwnServer {
    child: Option<Child>,
    dir: PathBuf,
    url: String,
}

/// Makes a directory that only we can look into. On disk, as a server's is.
pub fn scratch(name: &str) -> std::io::Result<PathBuf> {
    let base = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    let dir = base.join(format!(
        "hutch-bench-{name}-{}-{nanos:x}",
        std::process::id()
    ));
    // Fails if it exists, so nobody can have put it there for us.
    std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
    Ok(dir)
}

impl OwnServer {
    /// Starts a server that lets the whole fleet run, and waits until it
    /// answers.
    pub async fn start(instance_type: &str) -> Result<Self, Failure> {
        let dir = scratch("server").map_err(|error| failed(&error.to_string()))?;
        let mut server = Self {
            child: None,
            dir,
            url: String::new(),
        };
        match server.launch(instance_type).await {
            Ok(()) => Ok(server),
            Err(failure) => {
                // Why it did not start is what matters.
                let _ = server.stop().await;
                Err(failure)
            }
        }
    }

    async fn launch(&mut self, instance_type: &str) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&self.dir)
            .arg(format!("--max-instances={instance_type}={FLEET}"))
            .env_remove("HUTCH_CONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&error.to_string()))?;
        let stderr = child.stderr.take();
        self.child = Some(child);
        let (ready, url) = oneshot::channel();
        if let Some(stderr) = stderr {
            std::thread::spawn(move || follow(BufReader::new(stderr), ready));
        }
        match tokio::time::timeout(START, url).await {
            Ok(Ok(url)) => {
                self.url = url;
                Ok(())
            }
            Ok(Err(_)) => Err(failed("it ended; see above")),
            Err(_) => Err(failed("it did not answer in time")),
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Its data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The settings that reach it.
    pub fn settings(&self, settings: &Settings) -> Settings {
        settings.at(self.url.clone(), self.dir.clone())
    }

    /// Stops it and removes its directory.
    pub async fn stop(mut self) -> Result<(), Failure> {
        let child = self.child.take();
        let dir = self.dir.clone();
        let stopped = tokio::task::spawn_blocking(move || {
            if let Some(mut child) = child {
                end(&mut child);
            }
            remove(&dir)
        });
        match stopped.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(&format!("{}: {error}", self.dir.display()))),
            Err(error) => Err(failed(&error.to_string())),
        }
    }
}

/// Passes on what the server says, but for the line that says it is ready.
fn follow(lines: impl BufRead, ready: oneshot::Sender<String>) {
    let mut ready = Some(ready);
    for line in lines.lines().map_while(Result::ok) {
        match (line.strip_prefix("ready: "), ready.take()) {
            (Some(url), Some(ready)) => {
                // A caller that gave up stops the server anyway.
                let _ = ready.send(url.to_owned());
            }
            (_, waiting) => {
                if waiting.is_some() {
                    output::note(&line);
                }
                ready = waiting;
            }
        }
    }
}

fn end(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        // Not yet waited for, so the number is still this child's.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let until = Instant::now() + STOP;
    while Instant::now() < until {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The spawner lets go of the directory a moment after the server.
fn remove(dir: &Path) -> std::io::Result<()> {
    let until = Instant::now() + STOP;
    loop {
        match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(50)),
            result => return result,
        }
    }
}

fn failed(reason: &str) -> Failure {
    Failure::new(
        "BENCH_FAILED",
        format!("the server of this run: {reason}; name a running one with --url"),
    )
}
