//! Calls that go on into the sandbox.

use std::sync::Arc;

use capnweb::{CallFuture, Key, Path, Value};
use hutch_membrane::Admitted;
use hutch_protocol::ErrorCode;
use hutch_sandboxes::{Admission, Weight};

use super::super::run;
use super::guard::{Guard, guarded};
use super::{SandboxObject, asleep};

/// The object on the sandbox's `user` main that forwarded methods belong to.
const OBJECT: &str = "sandbox";

impl SandboxObject {
    /// Wakes the sandbox if the call needs it, and passes the call on. Dropping
    /// the future gives the call up inside, too.
    pub(super) fn forward(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        run(async move {
            let method = capnweb::display_path(&path);
            let sandbox = self.usable().await?;
            let weight = asleep::weight(&method);
            let Some(admission) = sandbox.enter(weight).await? else {
                return asleep::answer(&method, &args);
            };
            // Should it fall asleep under a call that only looks, this is the answer, too.
            let asleep = (weight == Weight::Passive).then(|| asleep::answer(&method, &args));
            let admission = Arc::new(admission);
            let boot = admission.machine().boot();
            tracing::Span::current().record("boot", tracing::field::display(boot));
            let args = hutch_membrane::inward_all(args)?;
            let mut whole = vec![Key::Name(OBJECT.to_owned())];
            whole.extend(path);
            let call = admission.user().call(whole, args);
            let result = match (guarded(&admission, &method, call).await, asleep) {
                (Err(error), Some(asleep))
                    if error.code == ErrorCode::OperationInterrupted
                        && sandbox.peek().is_none() =>
                {
                    return asleep;
                }
                (result, _) => result?,
            };
            let admitted: Arc<dyn Admitted> = Arc::new(Guard::new(Arc::clone(&admission)));
            let mut result = hutch_membrane::outward(result, &admitted)?;
            if method == "exec" {
                judge_memory(&mut result, &admission).await;
            }
            Ok(result)
        })
    }
}

/// A killed command may have been killed by the memory limit; only the host
/// can tell.
async fn judge_memory(result: &mut Value, admission: &Admission) {
    let Value::Object(members) = result else {
        return;
    };
    let killed = members.get("exitCode").and_then(Value::as_i64) == Some(137);
    let oom_killed = killed && admission.oom_killed().await;
    members.insert("oomKilled", Value::Bool(oom_killed));
}
