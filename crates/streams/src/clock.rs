//! Where the time of events comes from.

use std::fmt;
use std::sync::Arc;

use hutch_protocol::Timestamp;

/// A clock. The host's, but for tests.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The host's clock.
    #[must_use]
    pub fn host() -> Self {
        Self::from_fn(Timestamp::now)
    }

    /// A clock that asks a function.
    pub fn from_fn(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
