//! A running daemon and a client of it.

use capnweb::{
    Connection, ErrorValue, Limits, Object, ReadableStream, Session, Stub, Target, Value, ws,
};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UnixStream;

/// A daemon in its own pid namespace. Dropping it ends everything in there.
pub struct Sandbox {
    outer: Child,
    directory: tempfile::TempDir,
    group: Option<PathBuf>,
    pub user: Stub,
    connection: Connection,
}

/// Whether commands get control groups.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// Where this machine has them.
    Available,
    /// Never.
    None,
}

impl Sandbox {
    /// Starts a daemon, with control groups where this machine has them.
    pub async fn start() -> Self {
        Self::start_with(Groups::Available).await
    }

    pub async fn start_with(groups: Groups) -> Self {
        Self::start_filtered(groups, None).await
    }

    /// Starts a daemon whose commands get this system-call filter, as raw records.
    pub async fn start_filtered(groups: Groups, filter: Option<&[u8]>) -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "these tests make namespaces: run them as root"
        );
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("workspace")).unwrap();
        let user = inheritable(&UnixListener::bind(directory.path().join("user")).unwrap());
        let control = inheritable(&UnixListener::bind(directory.path().join("control")).unwrap());
        let group = (groups == Groups::Available).then(commands_group).flatten();
        let opened = group
            .as_ref()
            .map(|path| inheritable(&std::fs::File::open(path).unwrap()));
        let filter = filter.map(|records| {
            let path = directory.path().join("filter");
            std::fs::write(&path, records).unwrap();
            inheritable(&std::fs::File::open(path).unwrap())
        });
        let number = |fd: &Option<OwnedFd>| fd.as_ref().map(|fd| fd.as_raw_fd().to_string());
        let script = "exec 3<&$1 4<&$2; [ -n \"$3\" ] && exec 5<&$3; [ -n \"$4\" ] && exec 8<&$4; exec unshare --pid --fork --kill-child --mount-proc \"$0\"";
        let mut command = Command::new("/usr/bin/bash");
        command
            .args(["-c", script, env!("CARGO_BIN_EXE_sandboxd")])
            .arg(user.as_raw_fd().to_string())
            .arg(control.as_raw_fd().to_string())
            .args([&opened, &filter].map(|fd| number(fd).unwrap_or_default()))
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("SANDBOXD_BOOT_ID", "boot-of-this-test")
            .env("SANDBOXD_WORKSPACE", directory.path().join("workspace"))
            .stdin(Stdio::null())
            .current_dir("/");
        if opened.is_some() {
            command.env("SANDBOXD_COMMANDS_CGROUP", "5");
        }
        if filter.is_some() {
            command.env("SANDBOXD_COMMAND_SECCOMP", "8");
        }
        let outer = command.spawn().unwrap();
        drop((user, control, opened, filter));
        let (connection, main) = connect(&directory.path().join("user"), None).await;
        Self {
            outer,
            directory,
            group,
            user: main,
            connection,
        }
    }

    /// A path in the workspace.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join("workspace").join(relative)
    }

    /// Another connection to the `user` main.
    pub async fn another(&self) -> (Connection, Stub) {
        connect(&self.directory.path().join("user"), None).await
    }

    /// The `control` main.
    pub async fn control(&self) -> (Connection, Stub) {
        connect(&self.directory.path().join("control"), None).await
    }

    pub fn stats(&self) -> capnweb::Stats {
        self.connection.stats()
    }

    /// The process id of the daemon as this namespace sees it.
    pub fn daemon(&self) -> i32 {
        let path = format!("/proc/{0}/task/{0}/children", self.outer.id());
        std::fs::read_to_string(path)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    /// Resident memory of the daemon, in bytes.
    pub fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.daemon())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim()
            .trim_end_matches(" kB")
            .trim()
            .parse::<usize>()
            .unwrap()
            * 1024
    }

    /// How many descriptors the daemon has open on a path.
    pub fn open_on(&self, path: &Path) -> usize {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.daemon())).unwrap();
        entries
            .flatten()
            .filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == path))
            .count()
    }

    /// Calls a method of the user main.
    pub async fn call(&self, method: &str, args: Vec<Value>) -> Result<Value, ErrorValue> {
        self.user.call(method, args).await
    }

    /// `sandbox.exec`.
    pub async fn exec(&self, command: &str) -> Outcome {
        Outcome::of(
            self.call("sandbox.exec", vec![command.into()])
                .await
                .unwrap(),
        )
    }

    /// `sandbox.exec` with options.
    pub async fn exec_with(&self, command: &str, options: Object) -> Result<Outcome, ErrorValue> {
        self.call("sandbox.exec", vec![command.into(), options.into()])
            .await
            .map(Outcome::of)
    }

    /// Waits until a command succeeds.
    pub async fn until(&self, command: &str) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.exec(command).await.code != 0 {
            assert!(Instant::now() < deadline, "never true: {command}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.outer.kill();
        let _ = self.outer.wait();
        let Some(group) = &self.group else { return };
        let deadline = Instant::now() + Duration::from_secs(5);
        while group.exists() && Instant::now() < deadline {
            let children = std::fs::read_dir(group).into_iter().flatten().flatten();
            for child in children.filter(|child| child.path().is_dir()) {
                let _ = std::fs::write(child.path().join("cgroup.kill"), "1");
                let _ = std::fs::remove_dir(child.path());
            }
            let _ = std::fs::remove_dir(group);
        }
    }
}

/// What `exec` answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub code: i64,
    pub out: String,
    pub err: String,
}

impl Outcome {
    fn of(value: Value) -> Self {
        let text = |name: &str| {
            value
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            code: value
                .get("exitCode")
                .and_then(Value::as_i64)
                .expect("an exit code"),
            out: text("stdout"),
            err: text("stderr"),
        }
    }
}

/// The outcome of a command that wrote only this and succeeded.
pub fn ok(out: &str) -> Outcome {
    Outcome {
        code: 0,
        out: out.into(),
        err: String::new(),
    }
}

/// An object from pairs.
pub fn object<const N: usize>(pairs: [(&str, Value); N]) -> Object {
    pairs.into_iter().collect()
}

/// All bytes of a stream.
pub async fn drain(stream: Value) -> Vec<u8> {
    let mut stream = readable(stream);
    let mut all = Vec::new();
    while let Some(chunk) = stream.next().await {
        all.extend_from_slice(chunk.unwrap().as_bytes().expect("bytes"));
    }
    all
}

pub fn readable(value: Value) -> ReadableStream {
    match value {
        Value::Readable(stream) => stream,
        other => panic!("not a stream: {other:?}"),
    }
}

/// The data of server-sent events.
pub fn events(text: &[u8]) -> Vec<serde_json::Value> {
    let text = std::str::from_utf8(text).unwrap();
    let data = text
        .split("\n\n")
        .filter(|event| !event.is_empty() && *event != ":")
        .map(|event| {
            event
                .lines()
                .find_map(|line| line.strip_prefix("data: "))
                .expect("data")
        });
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

async fn connect(socket: &Path, main: Option<Arc<dyn Target>>) -> (Connection, Stub) {
    let mut limits = Limits::default();
    limits.send_bytes = 60 << 20;
    let io = UnixStream::connect(socket).await.unwrap();
    let io = ws::client(io, "ws://sandbox/rpc", &limits).await.unwrap();
    let (connection, driver) = Session::start(io, main, limits);
    tokio::spawn(driver);
    let main = connection.main();
    (connection, main)
}

/// A copy, out of the way of small numbers, that survives an execution.
fn inheritable(descriptor: &impl AsFd) -> OwnedFd {
    let copy = fcntl_dupfd_cloexec(descriptor, 20).unwrap();
    fcntl_setfd(&copy, FdFlags::empty()).unwrap();
    copy
}

/// A fresh control group of version 2 for commands, if this machine has them.
fn commands_group() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
    let root = PathBuf::from(mount.split(' ').nth(1)?);
    let group = root.join(format!("sandboxd-test-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir(&group).ok()?;
    Some(group)
}
