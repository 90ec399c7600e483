//! Promises that were rejected and that nobody caught: most often a function
//! of the script that was called without `await`.

use rquickjs::{Ctx, Runtime, Value};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Default)]
struct Seen {
    /// Rejected promises without a handler. One that gets a handler later is
    /// taken off again.
    count: usize,
    /// What the last of them was rejected with.
    last: String,
}

/// Counts rejections of one engine.
#[derive(Debug, Clone, Default)]
pub struct Rejections(Arc<Mutex<Seen>>);

impl Rejections {
    /// Starts counting.
    pub fn watch(runtime: &Runtime) -> Self {
        let rejections = Self::default();
        let seen = rejections.clone();
        let tracker = move |_: Ctx<'_>, _: Value<'_>, reason: Value<'_>, handled: bool| {
            seen.note(reason, handled);
        };
        runtime.set_host_promise_rejection_tracker(Some(Box::new(tracker)));
        rejections
    }

    fn note(&self, reason: Value<'_>, handled: bool) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if handled {
            seen.count = seen.count.saturating_sub(1);
        } else {
            seen.count += 1;
            seen.last = describe(&reason);
        }
    }

    /// What the last uncaught promise was rejected with.
    pub fn uncaught(&self) -> Option<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.count > 0).then(|| seen.last.clone())
    }
}

fn describe(reason: &Value<'_>) -> String {
    if let Some(exception) = reason.as_exception() {
        return exception.message().unwrap_or_default();
    }
    let text = reason.as_string().and_then(|text| text.to_string().ok());
    text.unwrap_or_else(|| format!("a value of type {}", reason.type_name()))
}
