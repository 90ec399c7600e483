//! The handle of one sandbox.

use crate::{ByteStream, ClientError, SpawnOptions, Spawned, decode, link::Remote, spawn};
use capnweb::{ReadableStream, Stub, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};

/// A sandbox, addressed. Nothing about it is known to be true until a call says so.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(crate) handle: Remote,
    path: String,
}

/// When an idle sandbox sleeps.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SleepAfter {
    /// Seconds.
    Seconds(f64),
    /// `<n>s`, `<n>m` or `<n>h`.
    Text(String),
}

impl SleepAfter {
    /// JSON has no NaN; the wire has, and the server gets to refuse it.
    fn to_value(&self) -> Value {
        match self {
            Self::Seconds(seconds) => Value::Number(*seconds),
            Self::Text(text) => Value::String(text.clone()),
        }
    }
}

/// The end of a sandbox's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxLog {
    /// Whole lines where the log has such. Parts of it were written inside the
    /// sandbox: it may hold anything.
    pub text: String,
    /// Whether the log has more before it.
    pub truncated: bool,
}

/// Options of [`Sandbox::create`]; absent ones take the server's defaults.
#[derive(Debug, Clone, Default)]
pub struct CreateOptions {
    /// Instance type.
    pub instance_type: Option<String>,
    /// Idle time before sleep.
    pub sleep_after: Option<SleepAfter>,
    /// Never sleep when idle.
    pub keep_alive: Option<bool>,
    /// Variables of every command.
    pub env: BTreeMap<String, String>,
}

/// Options of [`Sandbox::write_tar`].
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteTarOptions {
    /// The archive holds one thing, or the contents of a directory, and the path is
    /// what that is copied to: into it when it is a directory, else in its place or
    /// under its name. Otherwise the path is a directory that takes the members.
    pub as_copy: bool,
    /// Owners as the archive has them; else root.
    pub keep_owners: bool,
}

/// What [`Sandbox::write_tar`] wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// Members of the archive: files, directories, links.
    pub entries: u64,
    /// Bytes of content.
    pub bytes: u64,
}

/// Options of [`Sandbox::exec`].
#[derive(Debug, Clone, Default)]
pub struct ExecOptions {
    /// Working directory; `/workspace` when absent.
    pub cwd: Option<String>,
    /// Variables of this command, over the sandbox's.
    pub env: BTreeMap<String, String>,
    /// Time after which the command is ended and answers 124.
    pub timeout: Option<Duration>,
    /// Standard input as text; empty when absent.
    pub stdin: Option<String>,
}

/// The answer of [`Sandbox::exec`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecResult {
    /// Exit code, 128 + signal for a killed command, 124 after a timeout.
    pub exit_code: i32,
    /// Standard output; bytes that are not UTF-8 became U+FFFD.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
}

impl Sandbox {
    pub(crate) fn new(handle: Remote, path: &str) -> Self {
        Self {
            handle,
            path: path.to_owned(),
        }
    }

    /// The path it was addressed by.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The handle as an RPC object, for calls that have no method here. It
    /// belongs to the connection of this moment, and ends with it.
    ///
    /// # Errors
    /// [`ClientError::Connect`] when the connection had ended and no new one was made.
    pub async fn handle(&self) -> Result<Stub, ClientError> {
        Ok(self.handle.find().await?.1)
    }

    /// Makes the sandbox; boots nothing.
    ///
    /// # Errors
    /// SANDBOX_ALREADY_EXISTS, SANDBOX_NAME_RETIRED, SANDBOX_CREATE_PENDING,
    /// INVALID_NAME, INVALID_INSTANCE_TYPE, INVALID_SLEEP_AFTER, INVALID_ENV.
    pub async fn create(&self, options: &CreateOptions) -> Result<(), ClientError> {
        let mut input = capnweb::Object::default();
        if let Some(instance_type) = &options.instance_type {
            input.insert("instanceType", Value::String(instance_type.clone()));
        }
        if let Some(time) = &options.sleep_after {
            input.insert("sleepAfter", time.to_value());
        }
        if let Some(keep_alive) = options.keep_alive {
            input.insert("keepAlive", Value::Bool(keep_alive));
        }
        if !options.env.is_empty() {
            input.insert("env", env_value(&options.env));
        }
        self.done("create", vec![Value::Object(input)]).await
    }

    /// What the server knows of the sandbox. Boots nothing.
    ///
    /// # Errors
    /// SANDBOX_NOT_FOUND.
    pub async fn describe(&self) -> Result<serde_json::Value, ClientError> {
        let answer = self.call("describe", vec![]).await?;
        decode::json("describe", &answer)
    }

    /// Boots the sandbox now and waits until its workspace is ready.
    /// `discard_workspace` gives up a workspace that cannot be restored.
    ///
    /// # Errors
    /// SANDBOX_NOT_FOUND, SANDBOX_NAME_RETIRED, DRIVER_UNAVAILABLE,
    /// CAPACITY_EXCEEDED, and SNAPSHOT_FAILED for a workspace that was not restored.
    pub async fn start(&self, discard_workspace: bool) -> Result<(), ClientError> {
        let args = if discard_workspace {
            vec![Value::from_json(json!({"discardWorkspace": true}))]
        } else {
            vec![]
        };
        self.done("start", args).await
    }

    /// Keeps the work and tears the machine down. Open calls end with
    /// OPERATION_INTERRUPTED.
    ///
    /// # Errors
    /// SNAPSHOT_FAILED: the machine is gone all the same, and the work kept.
    pub async fn sleep(&self) -> Result<(), ClientError> {
        self.done("sleep", vec![]).await
    }

    /// Sleeps and starts again: open calls and processes end, the work stays.
    ///
    /// # Errors
    /// As [`Sandbox::sleep`] and [`Sandbox::start`].
    pub async fn restart(&self) -> Result<(), ClientError> {
        self.done("restart", vec![]).await
    }

    /// Sets how long the sandbox may be idle before it sleeps.
    ///
    /// # Errors
    /// INVALID_SLEEP_AFTER.
    pub async fn set_sleep_after(&self, time: &SleepAfter) -> Result<(), ClientError> {
        self.done("setSleepAfter", vec![time.to_value()]).await
    }

    /// Says whether the sandbox stays awake when it is idle.
    ///
    /// # Errors
    /// SANDBOX_NOT_FOUND, SANDBOX_NAME_RETIRED.
    pub async fn set_keep_alive(&self, keep: bool) -> Result<(), ClientError> {
        self.done("setKeepAlive", vec![Value::Bool(keep)]).await
    }

    /// Changes the variables of every command that starts from now on: a text
    /// sets one, `None` takes it away, and the others stay.
    ///
    /// # Errors
    /// INVALID_ENV.
    pub async fn set_env_vars(
        &self,
        changes: &BTreeMap<String, Option<String>>,
    ) -> Result<(), ClientError> {
        let mut object = capnweb::Object::default();
        for (name, value) in changes {
            let value = value.clone().map_or(Value::Null, Value::String);
            object.insert(name, value);
        }
        self.done("setEnvVars", vec![Value::Object(object)]).await
    }

    /// The end of the log of the sandbox's boots and daemon, which is kept on the
    /// host. Boots nothing.
    ///
    /// # Errors
    /// VALIDATION_FAILED when more than 512 KiB is asked for.
    pub async fn logs(&self, tail_bytes: usize) -> Result<SandboxLog, ClientError> {
        let input = Value::from_json(json!({"tailBytes": tail_bytes}));
        let answer = self.call("logs", vec![input]).await?;
        decode::typed("logs", &answer)
    }

    /// Removes the sandbox for ever and retires its name.
    ///
    /// # Errors
    /// SANDBOX_NOT_FOUND.
    pub async fn destroy(&self) -> Result<(), ClientError> {
        self.done("destroy", vec![]).await
    }

    /// Runs `command` as `bash -c` and waits for its end. An exit code other
    /// than 0 is an answer, not an error. Dropping the call ends the command and
    /// all it started.
    ///
    /// # Errors
    /// SANDBOX_NOT_FOUND; OPERATION_INTERRUPTED when the sandbox sleeps or is
    /// destroyed meanwhile; VALIDATION_FAILED for options that make no sense.
    pub async fn exec(
        &self,
        command: &str,
        options: &ExecOptions,
    ) -> Result<ExecResult, ClientError> {
        let mut args = vec![Value::String(command.to_owned())];
        let options = exec_value(options);
        if options.iter().next().is_some() {
            args.push(Value::Object(options));
        }
        let answer = self.call("exec", args).await?;
        decode::typed("exec", &answer)
    }

    /// Starts a program with its standard streams as byte streams. Dropping the
    /// result ends the program and all it started.
    ///
    /// # Errors
    /// COMMAND_NOT_FOUND and COMMAND_PERMISSION_DENIED for a program that cannot
    /// be started, and those of [`Sandbox::exec`].
    pub async fn spawn(&self, options: SpawnOptions) -> Result<Spawned, ClientError> {
        spawn::start(&self.handle, options).await
    }

    /// The tar archive of what is at `path`: `a/b` is the thing itself, `a/b/.` what
    /// is in the directory `a/b`. With `follow_link` a link is what it leads to.
    /// Whoever unpacks it must not trust it: it was written inside the sandbox.
    ///
    /// # Errors
    /// FILE_NOT_FOUND and the like for the path; what goes wrong later ends the stream.
    pub async fn read_tar(&self, path: &str, follow_link: bool) -> Result<ByteStream, ClientError> {
        let options = Value::from_json(json!({"followLink": follow_link}));
        let args = vec![Value::String(path.to_owned()), options];
        match self.call("readTar", args).await? {
            Value::Readable(stream) => Ok(ByteStream { stream }),
            _ => Err(ClientError::Shape {
                call: "readTar".to_owned(),
                reason: "no stream".to_owned(),
            }),
        }
    }

    /// Unpacks a tar archive, chunks of bytes. Files take their names when they are
    /// whole; dropping the call leaves no half of one.
    ///
    /// # Errors
    /// VALIDATION_FAILED for what is no archive or one that leads outside of the
    /// target; NOT_DIRECTORY, IS_DIRECTORY and FILE_NOT_FOUND for a target that does
    /// not suit; NO_SPACE.
    pub async fn write_tar(
        &self,
        path: &str,
        archive: ReadableStream,
        options: &WriteTarOptions,
    ) -> Result<Copied, ClientError> {
        let place = if options.as_copy { "as" } else { "into" };
        let keep = options.keep_owners;
        let args = vec![
            Value::String(path.to_owned()),
            Value::Readable(archive),
            Value::from_json(json!({"place": place, "keepOwners": keep})),
        ];
        let answer = self.call("writeTar", args).await?;
        decode::typed("writeTar", &answer)
    }

    /// Calls any method of the handle and awaits its answer.
    ///
    /// # Errors
    /// METHOD_NOT_FOUND, and the method's own.
    pub async fn call(&self, method: &str, args: Vec<Value>) -> Result<Value, ClientError> {
        self.handle.call(method, args).await
    }

    /// A call whose answer says nothing.
    async fn done(&self, method: &str, args: Vec<Value>) -> Result<(), ClientError> {
        self.call(method, args).await.map(drop)
    }
}

pub(crate) fn env_value(env: &BTreeMap<String, String>) -> Value {
    let mut object = capnweb::Object::default();
    for (name, value) in env {
        object.insert(name, Value::String(value.clone()));
    }
    Value::Object(object)
}

fn exec_value(options: &ExecOptions) -> capnweb::Object {
    let mut object = capnweb::Object::default();
    if let Some(cwd) = &options.cwd {
        object.insert("cwd", Value::String(cwd.clone()));
    }
    if !options.env.is_empty() {
        object.insert("env", env_value(&options.env));
    }
    if let Some(timeout) = options.timeout {
        object.insert("timeout", Value::Number(timeout.as_millis() as f64));
    }
    if let Some(stdin) = &options.stdin {
        object.insert("stdin", Value::String(stdin.clone()));
    }
    object
}
