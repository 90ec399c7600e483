//! The driver of a machine that cannot run sandboxes.

use std::sync::Arc;

use crate::{BoxFuture, Capabilities, Driver, DriverError, Instance, StartSpec};

/// Answers every start with the reason why none can work, so that a server
/// runs and reads stay possible.
#[derive(Clone, Debug)]
pub struct UnavailableDriver {
    reason: String,
    report: Capabilities,
}

impl UnavailableDriver {
    /// A driver that refuses with this reason and shows this report.
    #[must_use]
    pub fn new(reason: impl Into<String>, report: Capabilities) -> Self {
        Self {
            reason: reason.into(),
            report,
        }
    }
}

impl Driver for UnavailableDriver {
    fn name(&self) -> &'static str {
        "unavailable"
    }

    fn start(&self, _: StartSpec) -> BoxFuture<'_, Result<Arc<dyn Instance>, DriverError>> {
        Box::pin(async { Err(DriverError::Unavailable(self.reason.clone())) })
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<Arc<dyn Instance>>, DriverError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn report(&self) -> Capabilities {
        self.report.clone()
    }
}
