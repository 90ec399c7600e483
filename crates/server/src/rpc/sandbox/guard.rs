//! What holds a call, and what it opened, to one incarnation of a sandbox.

use std::sync::Arc;
use std::time::Duration;

use capnweb::{ErrorValue, Value};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hutch_membrane::{Admitted, Answer, Call, Door, error_value, from_sandbox};
use hutch_protocol::{ApiError, BootId};
use hutch_sandboxes::{Admission, Binding};

/// How long a broken session waits for the reason of its end.
const REASON_WITHIN: Duration = Duration::from_secs(1);
/// What an error calls a stream that an incarnation's end broke.
const STREAM: &str = "the stream";

/// An admission, with the way back.
pub(super) struct Guard {
    admission: Arc<Admission>,
    binding: Binding,
}

impl Guard {
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        let binding = admission.bind();
        Self { admission, binding }
    }

    fn over(&self, reason: &str) -> ErrorValue {
        error_value(interrupted(STREAM, reason, self.admission.machine().boot()))
    }
}

impl Admitted for Guard {
    fn touch(&self) {
        self.admission.touch();
    }

    fn ended(&self) -> BoxFuture<'_, ErrorValue> {
        async { self.over(self.admission.ended().await) }.boxed()
    }

    fn is_over(&self) -> Option<ErrorValue> {
        let reason = self.admission.ended().now_or_never()?;
        Some(self.over(reason))
    }

    fn failed<'a>(&'a self, error: &'a ErrorValue) -> BoxFuture<'a, ErrorValue> {
        async { error_value(failed(&self.admission, STREAM, error).await) }.boxed()
    }

    fn door(&self) -> Arc<dyn Door> {
        Arc::new(Entrance(self.binding.clone()))
    }
}

struct Entrance(Binding);

impl Door for Entrance {
    fn enter(&self, operation: String, call: Call) -> BoxFuture<'static, Answer> {
        let binding = self.0.clone();
        async move {
            let admission = Arc::new(binding.enter(&operation).await?);
            let result = guarded(&admission, &operation, call()?).await?;
            let admitted: Arc<dyn Admitted> = Arc::new(Guard::new(admission));
            Ok((result, admitted))
        }
        .boxed()
    }
}

/// Waits for a call into one incarnation, or for the incarnation's end.
pub(super) async fn guarded(
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
async fn failed(admission: &Admission, operation: &str, error: &ErrorValue) -> ApiError {
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

fn interrupted(operation: &str, reason: &str, boot: BootId) -> ApiError {
    ApiError::interrupted(operation, reason, true).with("bootId", boot.to_string())
}
