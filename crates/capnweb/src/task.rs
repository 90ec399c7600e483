//! Tasks of the runtime, if there is one.

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::error::ErrorValue;

/// Runs a future as a task; `None`, with the future dropped, outside of a runtime.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
    Handle::try_current()
        .ok()
        .map(|runtime| runtime.spawn(future).abort_handle())
}

pub(crate) fn no_runtime() -> ErrorValue {
    ErrorValue::new("Error", "A call needs a tokio runtime.")
}
