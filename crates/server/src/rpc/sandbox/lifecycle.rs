//! The verbs that the server defines.

use std::sync::Arc;

use capnweb::{CallFuture, Value};
use hutch_protocol::{ApiError, CreateInput, EnvPatch, SleepAfter};
use hutch_sandboxes::{Sandbox, StartOptions};
use serde::Deserialize;
use serde_json::json;

use super::super::{args, plain, run};
use super::{SandboxObject, live};

/// A method that is not forwarded.
#[derive(Clone, Copy)]
pub(super) enum Verb {
    Create,
    Describe,
    Start,
    Sleep,
    Restart,
    Destroy,
    SetEnvVars,
    SetSleepAfter,
    SetKeepAlive,
    Snapshot,
    WaitUntilProcessed,
    RuntimeState,
    LiveGet,
    LiveSubscribe,
    Logs,
}

impl Verb {
    pub(super) fn of(steps: &[&str]) -> Option<Self> {
        Some(match steps {
            ["create"] => Self::Create,
            ["describe" | "__describe"] => Self::Describe,
            ["start"] => Self::Start,
            ["sleep" | "stop"] => Self::Sleep,
            ["restart"] => Self::Restart,
            ["destroy"] => Self::Destroy,
            ["setEnvVars"] => Self::SetEnvVars,
            ["setSleepAfter"] => Self::SetSleepAfter,
            ["setKeepAlive"] => Self::SetKeepAlive,
            ["processor", "snapshot"] => Self::Snapshot,
            ["processor", "waitUntilProcessed"] => Self::WaitUntilProcessed,
            ["processor", "getRuntimeState"] => Self::RuntimeState,
            ["liveState", "get"] => Self::LiveGet,
            ["liveState", "subscribe"] => Self::LiveSubscribe,
            ["logs"] => Self::Logs,
            _ => return None,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StartInput {
    discard_workspace: bool,
}

/// How much of a log is answered unless the caller says, in bytes.
const TAIL: usize = 64 * 1024;
/// The most that a log holds, in bytes.
const TAIL_MAX: usize = 512 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct LogsInput {
    tail_bytes: usize,
}

impl Default for LogsInput {
    fn default() -> Self {
        Self { tail_bytes: TAIL }
    }
}

impl SandboxObject {
    pub(super) fn verb(self: Arc<Self>, verb: Verb, args: Vec<Value>) -> CallFuture {
        run(async move {
            match verb {
                Verb::Create => {
                    let options = args::at(&args, 0);
                    if let Some(Value::Number(seconds)) = options.get("sleepAfter") {
                        // JSON has no NaN; the refusal is the same as for -1.
                        SleepAfter::from_seconds(*seconds)?;
                    }
                    let input = CreateInput::from_json(&args::json(options)?)?;
                    self.world
                        .sandboxes
                        .create(&self.project, &self.path, input)
                        .await?;
                    Ok(self.as_value())
                }
                Verb::Describe => plain(&self.any().await?.describe()),
                Verb::Snapshot => {
                    let (offset, state) = self.any().await?.projection();
                    plain(&json!({ "offset": offset, "state": state }))
                }
                Verb::WaitUntilProcessed => live::processed(&self.any().await?, &args).await,
                Verb::RuntimeState => plain(&self.any().await?.runtime_state()),
                Verb::LiveGet => {
                    let (revision, state) = self.any().await?.projection();
                    plain(&json!({ "revision": revision, "state": state }))
                }
                Verb::LiveSubscribe => live::subscribe(&self.any().await?, args),
                Verb::Logs => {
                    let input: LogsInput = args::options(&args, 0, "logs")?;
                    if !(1..=TAIL_MAX).contains(&input.tail_bytes) {
                        return Err(args::invalid(format!("tailBytes must be 1 to {TAIL_MAX}")));
                    }
                    let sandbox = self.usable().await?;
                    let log = self.world.sandboxes.log(sandbox.key(), input.tail_bytes);
                    plain(&log.await?)
                }
                Verb::Start => {
                    let input: StartInput = args::options(&args, 0, "start")?;
                    let options = StartOptions {
                        discard_workspace: input.discard_workspace,
                    };
                    self.usable().await?.start(options).await?;
                    Ok(Value::Undefined)
                }
                Verb::Sleep => done(self.usable().await?.sleep().await),
                Verb::Restart => done(self.usable().await?.restart().await),
                Verb::Destroy => done(self.any().await?.destroy().await),
                Verb::SetEnvVars => self.set_env(&args).await,
                Verb::SetSleepAfter => {
                    let time = match args::at(&args, 0) {
                        Value::Number(seconds) => SleepAfter::from_seconds(*seconds)?,
                        other => SleepAfter::from_json(&args::json(other)?)?,
                    };
                    done(self.usable().await?.configure(None, Some(time), None).await)
                }
                Verb::SetKeepAlive => {
                    let flag = args::at(&args, 0).as_bool();
                    let flag = flag.ok_or_else(|| args::invalid("keepAlive must be a boolean"))?;
                    done(self.usable().await?.configure(None, None, Some(flag)).await)
                }
            }
        })
    }

    /// The sandbox, destroyed or not.
    pub(super) async fn any(&self) -> Result<Sandbox, ApiError> {
        self.world.sandboxes.find(&self.project, &self.path).await
    }

    /// The sandbox, if it can still be used.
    pub(super) async fn usable(&self) -> Result<Sandbox, ApiError> {
        self.world
            .sandboxes
            .find_usable(&self.project, &self.path)
            .await
    }

    async fn set_env(&self, args: &[Value]) -> Result<Value, ApiError> {
        let sandbox = self.usable().await?;
        let patch = env_patch(args::at(args, 0))?;
        done(sandbox.configure(Some(patch), None, None).await)
    }
}

/// An environment change as JavaScript writes it: `undefined` unsets as null
/// does.
fn env_patch(value: &Value) -> Result<EnvPatch, ApiError> {
    let Some(members) = value.as_object() else {
        return hutch_protocol::env::patch_from_json(&args::json(value)?);
    };
    let mut json = serde_json::Map::new();
    for (name, value) in members.iter() {
        json.insert(name.to_owned(), args::json(value)?);
    }
    hutch_protocol::env::patch_from_json(&serde_json::Value::Object(json))
}

fn done(result: Result<(), ApiError>) -> Result<Value, ApiError> {
    result.map(|()| Value::Undefined)
}
