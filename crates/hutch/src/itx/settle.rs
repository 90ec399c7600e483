//! Operations that end later: each runs as a task and reports under its ticket.

use super::{engine::Event, host::Tables};
use capnweb::{ErrorValue, Value};
use tokio::{runtime::Handle, task::JoinSet};

/// How an operation ended.
pub enum Settled {
    /// With a value.
    Value(Value),
    /// At the end of a stream.
    End,
    /// With an error.
    Error(ErrorValue),
}

impl From<Result<Value, ErrorValue>> for Settled {
    fn from(result: Result<Value, ErrorValue>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(error) => Self::Error(error),
        }
    }
}

/// The operations under way. They end with this.
pub struct Operations {
    runtime: Handle,
    tasks: JoinSet<()>,
}

impl Operations {
    /// No operations yet; they will run on `runtime`.
    pub fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            tasks: JoinSet::new(),
        }
    }

    /// Starts an operation that reports under `ticket`.
    pub fn start<F>(&mut self, tables: &mut Tables, ticket: u32, operation: F)
    where
        F: Future<Output = Settled> + Send + 'static,
    {
        // Ended tasks would pile up otherwise.
        while self.tasks.try_join_next().is_some() {}
        tables.operations += 1;
        let events = tables.events();
        let report = async move {
            let result = operation.await;
            // With the script gone nobody waits for the report.
            let _ = events.send(Event::Settled { ticket, result }).await;
        };
        self.tasks.spawn_on(report, &self.runtime);
    }

    /// Starts an operation that nobody waits for.
    pub fn detach(&mut self, operation: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(operation, &self.runtime);
    }
}
