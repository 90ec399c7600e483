//! A live tail that calls a client's function.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use capnweb::{CallFuture, Path, Stub, Target, Value};
use hutch_protocol::{ApiError, ErrorCode};
use hutch_streams::Subscription;
use tokio_util::task::AbortOnDropHandle;

use super::{answer, names, no_method};

/// The handle on a live tail. Closing or releasing it ends the tail.
pub(super) struct Following {
    task: Mutex<Option<AbortOnDropHandle<()>>>,
    end: Arc<OnceLock<ApiError>>,
}

impl Following {
    /// Delivers batch after batch, each once the last one was taken.
    pub(super) fn start(subscription: Subscription, function: Stub) -> Arc<Self> {
        let end = Arc::new(OnceLock::new());
        let ended = Arc::clone(&end);
        let task = tokio::spawn(async move {
            let why = deliver(subscription, &function).await;
            tracing::debug!(%why, "a live tail ended");
            let _ = ended.set(why);
        });
        Arc::new(Self {
            task: Mutex::new(Some(AbortOnDropHandle::new(task))),
            end,
        })
    }

    /// True while it delivers, false once it was closed; otherwise why it
    /// ended, with the offset to go on from.
    fn ping(&self) -> Result<Value, ApiError> {
        if let Some(why) = self.end.get() {
            return Err(why.clone());
        }
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Value::Bool(task.is_some()))
    }
}

/// Resolves with the reason that ended the tail.
async fn deliver(mut subscription: Subscription, function: &Stub) -> ApiError {
    let mut after = subscription.cursor();
    loop {
        let batch = match subscription.next().await {
            Ok(batch) => batch,
            Err(error) => return ApiError::from(error).with("replayAfterOffset", after),
        };
        let through = batch.scanned_through_offset;
        let taken = match Value::serialize(&batch) {
            // The client keeps its own cursor and subscribes again from there.
            Ok(batch) => function.call((), vec![batch]).await.map(drop),
            Err(error) => {
                return ApiError::new(ErrorCode::InternalError, error.to_string());
            }
        };
        if let Err(error) = taken {
            let shown: String = error.message.chars().take(200).collect();
            let message =
                format!("processEventBatch failed, so the tail ended; subscribe again: {shown}");
            return ApiError::new(ErrorCode::OperationInterrupted, message)
                .with("replayAfterOffset", after);
        }
        after = through;
    }
}

impl Target for Following {
    fn call(self: Arc<Self>, path: Path, _: Vec<Value>) -> CallFuture {
        match names(&path).as_deref() {
            Some(["ping"]) => answer(self.ping()),
            Some(["close" | "unsubscribe"]) => {
                drop(
                    self.task
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .take(),
                );
                answer(Ok(Value::Undefined))
            }
            _ => answer(Err(no_method("a subscription", &path))),
        }
    }
}
