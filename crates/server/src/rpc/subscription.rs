//! A live tail that calls a client's function.

use std::sync::{Arc, Mutex, PoisonError};

use capnweb::{CallFuture, Path, Stub, Target, Value};
use hutch_streams::Subscription;
use tokio_util::task::AbortOnDropHandle;

use super::{answer, names, no_method};

/// The handle on a live tail. Closing or releasing it ends the tail.
pub(super) struct Following {
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Following {
    /// Delivers batch after batch, each once the last one was taken.
    pub(super) fn start(mut subscription: Subscription, function: Stub) -> Arc<Self> {
        let task = tokio::spawn(async move {
            loop {
                let batch = match subscription.next().await {
                    Ok(batch) => batch,
                    Err(error) => {
                        tracing::debug!(%error, "a live tail ended");
                        return;
                    }
                };
                let Ok(batch) = Value::serialize(&batch) else {
                    return;
                };
                // A function that fails or is gone ends the tail: the client
                // keeps its own cursor and subscribes again from there.
                if function.call((), vec![batch]).await.is_err() {
                    return;
                }
            }
        });
        Arc::new(Self {
            task: Mutex::new(Some(AbortOnDropHandle::new(task))),
        })
    }

    fn alive(&self) -> bool {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.as_ref().is_some_and(|task| !task.is_finished())
    }
}

impl Target for Following {
    fn call(self: Arc<Self>, path: Path, _: Vec<Value>) -> CallFuture {
        match names(&path).as_deref() {
            Some(["ping"]) => answer(Ok(Value::Bool(self.alive()))),
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
