//! One sandbox's handle: lifecycle verbs of ours, and every method of the
//! sandbox API by forwarding.

mod asleep;
mod forward;
mod guard;
mod lifecycle;
mod live;

use std::sync::Arc;
use std::time::Instant;

use capnweb::{CallFuture, ErrorValue, Path, Scoped, Stub, Target, Value};
use futures_util::FutureExt;
use hutch_protocol::{ProjectId, SandboxPath};
use tracing::Instrument;

use super::{World, answer, names, no_method, no_property};

/// Names that every JavaScript object has, or that would make a handle look
/// like a promise. They are never methods of a sandbox.
const RESERVED: [&str; 14] = [
    "then",
    "catch",
    "finally",
    "constructor",
    "prototype",
    "__proto__",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "hasOwnProperty",
    "toString",
    "valueOf",
    "toJSON",
];

/// A handle. It holds an address; each call finds the sandbox anew.
pub(super) struct SandboxObject {
    world: Arc<World>,
    project: ProjectId,
    path: SandboxPath,
}

impl SandboxObject {
    pub(super) fn new(world: Arc<World>, project: ProjectId, path: SandboxPath) -> Arc<Self> {
        Arc::new(Self {
            world,
            project,
            path,
        })
    }
}

impl Target for SandboxObject {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        let Some(steps) = names(&path).filter(|steps| !steps.is_empty() && steps.len() <= 4) else {
            return answer(Err(no_method("a sandbox", &path)));
        };
        if steps
            .iter()
            .any(|step| RESERVED.contains(step) || step.is_empty() || step.len() > 64)
        {
            return answer(Err(no_method("a sandbox", &path)));
        }
        // An error span, so that every line of the call has it at any level.
        let span = tracing::error_span!(
            "call",
            trace = %Trace::new(),
            project = %self.project,
            sandbox = %self.path.name(),
            method = %steps.join("."),
            boot = tracing::field::Empty,
        );
        let verb = lifecycle::Verb::of(&steps);
        let call = span.in_scope(|| match verb {
            Some(verb) => self.verb(verb, args),
            None => self.forward(path, args),
        });
        logged(call).instrument(span).boxed()
    }

    fn get(self: Arc<Self>, path: Path) -> CallFuture {
        match names(&path).as_deref() {
            Some(["path"]) => answer(Ok(Value::String(self.path.to_string()))),
            Some(["projectId"]) => answer(Ok(Value::String(self.project.to_string()))),
            Some(["processor"]) => answer(Ok(Value::Stub(Scoped::stub(self, "processor")))),
            Some([name]) if !RESERVED.contains(name) => {
                let name = (*name).to_owned();
                answer(Ok(Value::Stub(Scoped::stub(self, name))))
            }
            _ => std::future::ready(Err(no_property(&path))).boxed(),
        }
    }
}

/// Names one call in the logs.
struct Trace(uuid::Uuid);

impl Trace {
    fn new() -> Self {
        Self(uuid::Uuid::new_v4())
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.simple().fmt(f)
    }
}

/// Writes one line on how a call ended. What it was about stays out of it.
async fn logged(call: CallFuture) -> Result<Value, ErrorValue> {
    let begun = Instant::now();
    let result = call.await;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    match &result {
        Ok(_) => tracing::debug!(ms, "answered"),
        Err(error) => tracing::info!(ms, code = error.code().unwrap_or_default(), "failed"),
    }
    result
}

impl SandboxObject {
    fn as_value(self: &Arc<Self>) -> Value {
        Value::Stub(Stub::local(Arc::<Self>::clone(self)))
    }
}
