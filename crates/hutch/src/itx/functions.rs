//! Functions of the script that the server calls.

use super::engine::Event;
use capnweb::{ErrorValue, Stub, Value};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// A function given away. Dropping the last reference tells the script.
pub struct Exported {
    id: u32,
    events: mpsc::Sender<Event>,
}

impl Exported {
    /// A reference to the script's function `id`.
    pub fn stub(id: u32, events: mpsc::Sender<Event>) -> Stub {
        let exported = Arc::new(Self { id, events });
        Stub::function(move |args| {
            let exported = exported.clone();
            async move { exported.call(args).await }
        })
    }

    async fn call(&self, args: Vec<Value>) -> Result<Value, ErrorValue> {
        let ended = || ErrorValue::new("Error", "the script has ended");
        let (reply, answer) = oneshot::channel();
        let invoke = Event::Invoke {
            id: self.id,
            args,
            reply,
        };
        self.events.send(invoke).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        let (id, events) = (self.id, self.events.clone());
        // The queue may be full, and a drop cannot wait for room.
        if let Err(mpsc::error::TrySendError::Full(event)) = events.try_send(Event::Dropped { id })
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { events.send(event).await });
        }
    }
}
