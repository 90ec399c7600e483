//! Readers of a sandbox's projection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capnweb::{CallFuture, Path, Stub, Target, Value};
use hutch_protocol::ApiError;
use hutch_sandboxes::{LiveState, Sandbox};
use serde::Deserialize;
use tokio_util::task::AbortOnDropHandle;

use super::super::{answer, args, names, no_method, plain};

/// How long a follower may take with one message before it counts as dead.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// How long `waitUntilProcessed` waits unless the caller says.
const PROCESSED_WITHIN: Duration = Duration::from_secs(15);
/// The longest wait that a caller may ask for.
const WAIT_MAX: Duration = Duration::from_secs(3600);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct WaitInput {
    offset: Option<u64>,
    timeout_ms: Option<f64>,
}

/// `processor.waitUntilProcessed({offset, timeoutMs?})`.
pub(super) async fn processed(sandbox: &Sandbox, args: &[Value]) -> Result<Value, ApiError> {
    let input: WaitInput = args::options(args, 0, "waitUntilProcessed")?;
    let offset = input
        .offset
        .ok_or_else(|| args::invalid("waitUntilProcessed needs an offset"))?;
    let limit = match input.timeout_ms {
        None => PROCESSED_WITHIN,
        Some(millis) => Duration::try_from_secs_f64(millis / 1e3)
            .ok()
            .filter(|limit| *limit <= WAIT_MAX)
            .ok_or_else(|| args::invalid("timeoutMs must be between 0 and 3600000"))?,
    };
    let offset = sandbox.processed(offset, limit).await?;
    plain(&serde_json::json!({ "offset": offset }))
}

/// `liveState.subscribe(fn)`.
pub(super) fn subscribe(sandbox: &Sandbox, args: Vec<Value>) -> Result<Value, ApiError> {
    let Some(Value::Stub(function)) = args.into_iter().next() else {
        return Err(args::invalid("liveState.subscribe takes a function"));
    };
    let follower = Follower::start(sandbox.follow()?, function);
    Ok(Value::Stub(Stub::local(follower)))
}

/// A subscription. Releasing it ends it.
struct Follower {
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Follower {
    /// Delivers message after message, each once the last one was taken.
    fn start(mut state: LiveState, function: Stub) -> Arc<Self> {
        let task = tokio::spawn(async move {
            while let Some(message) = state.next().await {
                let Ok(message) = Value::serialize(&message) else {
                    return;
                };
                let taken = function.call((), vec![message]);
                if !matches!(tokio::time::timeout(TAKEN_WITHIN, taken).await, Ok(Ok(_))) {
                    return;
                }
            }
        });
        Arc::new(Self {
            task: Mutex::new(Some(AbortOnDropHandle::new(task))),
        })
    }

    fn task(&self) -> std::sync::MutexGuard<'_, Option<AbortOnDropHandle<()>>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False tells a follower that it was dropped and has to subscribe again.
    fn alive(&self) -> bool {
        self.task().as_ref().is_some_and(|task| !task.is_finished())
    }
}

impl Target for Follower {
    fn call(self: Arc<Self>, path: Path, _: Vec<Value>) -> CallFuture {
        match names(&path).as_deref() {
            Some(["ping"]) => answer(Ok(Value::Bool(self.alive()))),
            Some(["unsubscribe"]) => {
                drop(self.task().take());
                answer(Ok(Value::Undefined))
            }
            _ => answer(Err(no_method("a subscription", &path))),
        }
    }
}
