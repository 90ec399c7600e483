//! The server's side of the native driver.

use std::sync::Arc;

use crate::{BoxFuture, Capabilities, Driver, DriverError, Instance, NativeOptions, StartSpec};

/// Runs sandboxes as processes of this machine.
#[derive(Debug)]
pub struct NativeDriver {
    options: NativeOptions,
}

impl NativeDriver {
    /// Connects to the data directory's spawner, starting it if none runs.
    ///
    /// # Errors
    /// [`DriverError::Unavailable`] with the reason where this machine or user
    /// cannot run sandboxes, [`DriverError::Superseded`] if a newer server is
    /// obeyed already.
    pub async fn connect_or_start(options: NativeOptions) -> Result<Self, DriverError> {
        Ok(Self { options })
    }

    /// What this machine can do, without starting anything.
    #[must_use]
    pub fn detect() -> Capabilities {
        Capabilities::default()
    }
}

impl Driver for NativeDriver {
    fn name(&self) -> &'static str {
        "native"
    }

    fn start(&self, _: StartSpec) -> BoxFuture<'_, Result<Arc<dyn Instance>, DriverError>> {
        let place = self.options.data_dir.display().to_string();
        Box::pin(async move { Err(DriverError::Unavailable(place)) })
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<Arc<dyn Instance>>, DriverError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn report(&self) -> Capabilities {
        Self::detect()
    }
}
