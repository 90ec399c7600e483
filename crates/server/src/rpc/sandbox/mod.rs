//! One sandbox's handle: lifecycle verbs of ours, and every method of the
//! sandbox API by forwarding.

mod asleep;
mod forward;
mod lifecycle;
mod live;

use std::sync::Arc;

use capnweb::{CallFuture, Path, Scoped, Stub, Target, Value};
use futures_util::FutureExt;
use hutch_protocol::{ProjectId, SandboxPath};

use super::{World, answer, names, no_method, no_property};

pub(super) use forward::{failed, guarded, interrupted};

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
        match lifecycle::Verb::of(&steps) {
            Some(verb) => self.verb(verb, args),
            None => self.forward(path, args),
        }
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

impl SandboxObject {
    fn as_value(self: &Arc<Self>) -> Value {
        Value::Stub(Stub::local(Arc::<Self>::clone(self)))
    }
}
