//! Files, as callers see them from inside. No path ever passes through a shell.
//!
//! Reading and writing block, so they run on the runtime's blocking threads, a
//! bounded number of them at a time.

mod archive;
mod failure;
mod list;
mod manage;
mod media;
mod moving;
mod path;
mod read;
mod replace;
mod stream;
mod write;

pub use archive::Placement;
pub use list::ListOptions;
pub use read::{Content, ReadEncoding, ReadFile};
pub use stream::FileStream;
pub use write::NewContent;

use failure::failure;
use hutch_protocol::ApiError;
use path::Location;
use std::io;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// File operations that may block at one time; more wait their turn.
const OPERATIONS_MAX: usize = 32;
/// Archives that are read or written at one time. Each blocks a thread for as long
/// as its caller takes.
const ARCHIVES_MAX: usize = 8;

/// The file operations of one sandbox.
#[derive(Debug)]
pub struct Files {
    workspace: String,
    slots: Arc<Semaphore>,
    archives: Arc<Semaphore>,
}

impl Files {
    /// The service; relative paths start at `workspace`.
    #[must_use]
    pub fn new(workspace: impl Into<String>) -> Self {
        Self {
            workspace: workspace.into(),
            slots: Arc::new(Semaphore::new(OPERATIONS_MAX)),
            archives: Arc::new(Semaphore::new(ARCHIVES_MAX)),
        }
    }

    /// Runs blocking work about one path.
    async fn blocking<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &str,
        work: impl FnOnce(&Location) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let location = Location::parse(path, &self.workspace, operation)?;
        let shown = location.shown.clone();
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let task = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            work(&location)
        });
        task.await
            .unwrap_or_else(|error| Err(failure(operation, &shown, &io::Error::other(error))))
    }
}

#[cfg(test)]
mod tests;
