//! The handle of one sandbox.

use crate::{ClientError, SpawnOptions, Spawned, client::Link, decode, spawn};
use capnweb::{Pending, Stub, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A sandbox, addressed. Nothing about it is known to be true until a call says so.
#[derive(Debug, Clone)]
pub struct Sandbox {
    link: Arc<Link>,
    handle: Stub,
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
    pub(crate) fn new(link: Arc<Link>, handle: Stub, path: &str) -> Self {
        Self {
            link,
            handle,
            path: path.to_owned(),
        }
    }

    /// The path it was addressed by.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The handle as an RPC object, for calls that have no method here.
    pub fn handle(&self) -> &Stub {
        &self.handle
    }

    /// Makes the sandbox; boots nothing.
    pub async fn create(&self, options: &CreateOptions) -> Result<(), ClientError> {
        let mut input = capnweb::Object::default();
        if let Some(instance_type) = &options.instance_type {
            input.insert("instanceType", Value::String(instance_type.clone()));
        }
        match &options.sleep_after {
            // JSON has no NaN; the server gets to refuse it.
            Some(SleepAfter::Seconds(seconds)) => {
                input.insert("sleepAfter", Value::Number(*seconds));
            }
            Some(SleepAfter::Text(text)) => {
                input.insert("sleepAfter", Value::String(text.clone()));
            }
            None => {}
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
    pub async fn describe(&self) -> Result<serde_json::Value, ClientError> {
        let answer = self.call("describe", vec![]).await?;
        decode::json("describe", &answer)
    }

    /// Boots the sandbox now and waits until its workspace is ready.
    pub async fn start(&self, discard_workspace: bool) -> Result<(), ClientError> {
        let args = if discard_workspace {
            vec![Value::from_json(json!({"discardWorkspace": true}))]
        } else {
            vec![]
        };
        self.done("start", args).await
    }

    /// Keeps the work and tears the machine down.
    pub async fn sleep(&self) -> Result<(), ClientError> {
        self.done("sleep", vec![]).await
    }

    /// Removes the sandbox for ever and retires its name.
    pub async fn destroy(&self) -> Result<(), ClientError> {
        self.done("destroy", vec![]).await
    }

    /// Runs `command` as `bash -c` and waits for its end. An exit code other
    /// than 0 is an answer, not an error.
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
    pub async fn spawn(&self, options: SpawnOptions) -> Result<Spawned, ClientError> {
        spawn::start(&self.link, &self.handle, options).await
    }

    /// Calls any method of the handle and awaits its answer.
    pub async fn call(&self, method: &str, args: Vec<Value>) -> Result<Value, ClientError> {
        self.link.call(&self.handle, method, args).await
    }

    /// Sends a call at once, in order; the answer is awaited where it is needed.
    pub fn begin(&self, method: &str, args: Vec<Value>) -> Pending {
        self.handle.call(method, args)
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
