//! Calls that go on into the sandbox.

use std::sync::Arc;
use std::time::Duration;

use capnweb::{CallFuture, ErrorValue, Key, Path, Value};
use hutch_protocol::{ApiError, BootId};
use hutch_sandboxes::Admission;

use super::super::error::from_sandbox;
use super::super::membrane::{self, Guard};
use super::super::run;
use super::{SandboxObject, asleep};

/// How long a broken session waits for the reason of its end.
const REASON_WITHIN: Duration = Duration::from_secs(1);

/// The object on the sandbox's `user` main that forwarded methods belong to.
const OBJECT: &str = "sandbox";

impl SandboxObject {
    /// Wakes the sandbox if the call needs it, and passes the call on. Dropping
    /// the future gives the call up inside, too.
    pub(super) fn forward(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        run(async move {
            let method = capnweb::display_path(&path);
            let sandbox = self.usable().await?;
            let Some(admission) = sandbox.enter(asleep::weight(&method)).await? else {
                return asleep::answer(&method, &args);
            };
            let admission = Arc::new(admission);
            let boot = admission.machine().boot();
            tracing::Span::current().record("boot", tracing::field::display(boot));
            let args = membrane::inward_all(args)?;
            let mut whole = vec![Key::Name(OBJECT.to_owned())];
            whole.extend(path);
            let call = admission.user().call(whole, args);
            let guard = Guard::new(Arc::clone(&admission));
            let result = guarded(&admission, &method, call).await?;
            let mut result = membrane::outward(result, &guard)?;
            if method == "exec" {
                judge_memory(&mut result, &admission).await;
            }
            Ok(result)
        })
    }
}

/// Waits for a call into one incarnation, or for the incarnation's end.
pub(in super::super) async fn guarded(
    admission: &Admission,
    operation: &str,
    call: capnweb::Pending,
) -> Result<Value, ApiError> {
    let boot = admission.machine().boot();
    tokio::select! {
        biased;
        result = call => match result {
            Ok(value) => Ok(value),
            Err(error) => Err(failed(admission, operation, &error).await),
        },
        reason = admission.ended() => Err(interrupted(operation, reason, boot)),
    }
}

/// What a failure of a call or stream of one incarnation is to its caller.
pub(in super::super) async fn failed(
    admission: &Admission,
    operation: &str,
    error: &ErrorValue,
) -> ApiError {
    // Not by the code, which the sandbox may write as it likes.
    if !error.is_end_of_session() {
        return from_sandbox(error);
    }
    // The end of the incarnation breaks the session, too, and may be noticed
    // after it; its reason is the one that callers can act on.
    let reason = tokio::time::timeout(REASON_WITHIN, admission.ended()).await;
    let boot = admission.machine().boot();
    interrupted(operation, reason.unwrap_or("transport_disposed"), boot)
}

pub(in super::super) fn interrupted(operation: &str, reason: &str, boot: BootId) -> ApiError {
    ApiError::interrupted(operation, reason, true).with("bootId", boot.to_string())
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
