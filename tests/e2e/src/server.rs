//! A server of a test's own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::Api;
use crate::process::wait_until;

/// The folder of the binaries that this test was built with.
pub fn binaries() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.parent().and_then(Path::parent).expect("…/deps/test");
    let folder = folder.to_path_buf();
    assert!(
        folder.join("hutch").is_file(),
        "run `cargo build --workspace --bins` first"
    );
    folder
}

/// A running server and its data directory. Dropping it destroys every sandbox,
/// stops the server and waits until nothing of it is left.
pub struct Hutch {
    place: TempDir,
    programs: PathBuf,
    child: Option<Child>,
    url: String,
    log: Arc<Mutex<String>>,
    /// The size of the data directory's own disk, in MiB.
    disk: Option<u32>,
}

/// Runs `$2 serve` with a data directory on a disk of its own, which is gone
/// with the server and its spawner.
const ON_OWN_DISK: &str = "mount -t tmpfs -o size=$3m,mode=711 hutch \"$1\" && exec \"$2\" serve --listen 127.0.0.1:0 --data-dir \"$1/data\"";

impl Hutch {
    /// Starts one on a free port.
    pub fn start() -> Self {
        Self::start_from(&binaries())
    }

    /// Starts one from the binaries in a folder.
    pub fn start_from(programs: &Path) -> Self {
        Self::start_with(programs, None)
    }

    /// Starts one whose data directory is on a small disk in memory, in a
    /// mount namespace of its own. It cannot be restarted: the disk goes with it.
    pub fn start_on_disk(mib: u32) -> Self {
        Self::start_with(&binaries(), Some(mib))
    }

    fn start_with(programs: &Path, disk: Option<u32>) -> Self {
        let place = tempfile::Builder::new()
            .prefix("ht")
            .tempdir()
            .expect("a temporary directory");
        let mut hutch = Self {
            place,
            programs: programs.to_owned(),
            child: None,
            url: String::new(),
            log: Arc::default(),
            disk,
        };
        hutch.serve();
        hutch
    }

    /// Starts the server again on the same data directory.
    pub fn serve(&mut self) {
        self.serve_at("127.0.0.1:0");
    }

    /// The same on an address of the caller's choice, but for a disk of its own.
    pub fn serve_at(&mut self, listen: &str) {
        if let Err(told) = self.run(listen, &[], &[]) {
            panic!("hutch serve did not become ready:\n{told}");
        }
    }

    /// Starts it with more options and variables; what it told if it ended
    /// before it was ready.
    pub fn try_serve(&mut self, args: &[&str], variables: &[(&str, &str)]) -> Result<(), String> {
        self.run("127.0.0.1:0", args, variables)
    }

    fn run(
        &mut self,
        listen: &str,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<(), String> {
        let program = self.programs.join("hutch");
        let mut command = match self.disk {
            None => {
                let mut command = Command::new(program);
                let args = ["serve", "--listen", listen, "--data-dir"];
                command.args(args).arg(self.data_dir());
                command
            }
            Some(mib) => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", ON_OWN_DISK, "sh"]);
                command.arg(self.place.path()).arg(program);
                command.arg(mib.to_string());
                command
            }
        };
        command
            .args(args)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("hutch serve");
        let mut lines = BufReader::new(child.stderr.take().expect("its stderr")).lines();
        let mut told = String::new();
        self.url = loop {
            let Some(Ok(line)) = lines.next() else {
                let _ = child.kill();
                let _ = child.wait();
                return Err(told);
            };
            told.push_str(&line);
            told.push('\n');
            if let Some(at) = line.find("http://").filter(|_| line.contains("ready")) {
                break line[at..]
                    .split(|c: char| c.is_whitespace() || c == '"')
                    .next()
                    .expect("a URL")
                    .to_owned();
            }
        };
        let log = Arc::clone(&self.log);
        // Ends with the server's stderr.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = log.lock().expect("the log");
                log.push_str(&line);
                log.push('\n');
            }
        });
        self.child = Some(child);
        Ok(())
    }

    /// Whether the server has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        let ended = self.child.as_mut().map(Child::try_wait);
        if ended.is_none_or(|ended| ended.expect("its state").is_some()) {
            self.child = None;
        }
        self.child.is_none()
    }

    /// Serves from another folder's binaries from the next start on.
    pub fn upgrade_to(&mut self, programs: &Path) {
        programs.clone_into(&mut self.programs);
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.place().join("data")
    }

    /// The folder of the data directory, as it is seen from here.
    pub fn place(&self) -> PathBuf {
        let place = self.place.path();
        match (self.disk, &self.child) {
            (Some(_), Some(child)) => {
                let inside = place.strip_prefix("/").expect("an absolute path");
                PathBuf::from(format!("/proc/{}/root", child.id())).join(inside)
            }
            _ => place.to_owned(),
        }
    }

    /// What the server said on stderr since it was ready.
    pub fn log(&self) -> String {
        self.log.lock().expect("the log").clone()
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("a running server").id()
    }

    /// The admin key.
    pub fn token(&self) -> String {
        let key = fs::read_to_string(self.data_dir().join("admin.key")).expect("the admin key");
        key.trim().to_owned()
    }

    /// A connection that has authenticated, on project `default`.
    pub async fn api(&self) -> Api {
        Api::connect(&self.url, &self.token()).await
    }

    /// Kills the server with the given signal and waits for its end.
    pub fn end(&mut self, signal: Signal) {
        if let Some(mut child) = self.child.take() {
            let pid = Pid::from_child(&child);
            kill_process(pid, signal).expect("the server runs");
            child.wait().expect("its end");
        }
    }

    /// A command line on this server.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binaries().join("hutch"));
        command
            .args(args)
            .env("HUTCH_URL", &self.url)
            .env("HUTCH_DATA_DIR", self.data_dir());
        command
            .env_remove("HUTCH_PROJECT")
            .env_remove("HUTCH_TOKEN");
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command line to its end.
    pub fn cli(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("hutch")
    }

    /// Runs a command line with input.
    pub fn cli_with(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("hutch");
        let mut stdin = child.stdin.take().expect("its stdin");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // The command may end before it has read everything.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().expect("its end");
        writer.join().expect("the writer");
        output
    }

    /// Processes that carry this data directory in their command line.
    pub fn processes(&self) -> Vec<u32> {
        let place = self.place.path().as_os_str().as_encoded_bytes().to_vec();
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let pids = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let ours = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            *pid != std::process::id() && line.windows(place.len()).any(|window| window == place)
        };
        pids.filter(ours).collect()
    }
}

impl Drop for Hutch {
    fn drop(&mut self) {
        if self.child.is_none() && !std::thread::panicking() {
            self.serve();
        }
        if self.child.is_some() {
            let list = self.cli(&["project", "list", "--json"]);
            let projects: serde_json::Value =
                serde_json::from_slice(&list.stdout).unwrap_or_default();
            for project in projects.as_array().into_iter().flatten() {
                let slug = project["slug"].as_str().unwrap_or_default();
                let _ = self.cli(&["sandbox", "destroy", "--all", "--yes", "-p", slug]);
            }
            self.end(Signal::TERM);
        }
        if std::thread::panicking() {
            eprintln_log(&self.log());
            // What a failed test leaves must not fail the next one: the spawner
            // clears up when asked to end, and only then is killed.
            for signal in [Signal::TERM, Signal::KILL] {
                for pid in self.processes() {
                    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                        let _ = kill_process(pid, signal);
                    }
                }
                let begun = Instant::now();
                while !self.processes().is_empty() && begun.elapsed() < Duration::from_secs(10) {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        } else {
            wait_until("the spawner ends once it holds nothing", || {
                self.processes().is_empty()
            });
        }
    }
}

#[allow(clippy::print_stderr, reason = "a failed test shows the server's log")]
fn eprintln_log(log: &str) {
    eprintln!("--- the server's log ---\n{log}---");
}
