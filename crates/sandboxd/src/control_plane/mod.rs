//! What the daemon offers over RPC: the `user` main for what callers ask for and
//! the `control` main for the host alone.

mod answer;
mod archives;
mod arguments;
mod commands;
mod control;
mod files;
mod listen;
mod processes;
mod sandbox;
mod signals;
mod user;

pub use control::Control;
pub use listen::serve;
pub use user::User;

use crate::managers::environment::Environment;
use crate::services::commands::Commands;
use crate::services::files::Files;
use crate::services::processes::Processes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The services behind both mains.
#[derive(Debug)]
pub struct Services {
    /// Commands.
    pub commands: Arc<Commands>,
    /// Files.
    pub files: Files,
    /// Background processes.
    pub processes: Arc<Processes>,
    /// The environment of commands.
    pub environment: Arc<Environment>,
    /// Calls that run now on any `user` main.
    pub open_calls: OpenCalls,
}

/// Counts the calls under way.
#[derive(Debug, Default, Clone)]
pub struct OpenCalls(Arc<AtomicUsize>);

impl OpenCalls {
    /// Counts one call until the result is dropped.
    fn enter(&self) -> OpenCall {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenCall(Arc::clone(&self.0))
    }

    /// How many run.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

struct OpenCall(Arc<AtomicUsize>);

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
