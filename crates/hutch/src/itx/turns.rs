//! The turns of a script: run until it must wait, then take the next report.

use super::{
    engine::{Event, Shared, thrown},
    outcome::{Outcome, ScriptError},
    settle::Settled,
    value,
};
use rquickjs::{CatchResultExt, Context, Ctx, Function, Object, Persistent, Runtime};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};
use tokio::sync::mpsc;

/// A script under way. Fields drop in this order: the script's values before the
/// context, the context before the engine.
pub struct Turns {
    /// The prelude's entry points.
    pub entries: Persistent<Object<'static>>,
    /// Where the script runs.
    pub context: Context,
    /// The engine.
    pub runtime: Runtime,
    /// What host functions share.
    pub shared: Shared,
    /// Set when the script is to stop.
    pub flag: Arc<AtomicBool>,
    /// Reports.
    pub events: mpsc::Receiver<Event>,
}

impl Turns {
    /// Runs the script to its end. `clock` only waits; work is done elsewhere.
    pub fn until_end(&mut self, clock: &tokio::runtime::Runtime) -> Outcome {
        loop {
            self.run_jobs();
            if self.flag.load(Ordering::Relaxed) {
                return Outcome::Canceled;
            }
            if let Some(outcome) = self.shared.state().outcome.take() {
                return outcome;
            }
            let due = self.shared.state().tables.timers.take_due(Instant::now());
            let told = match due {
                Some(timer) => self.tell("fired", (timer,)),
                None if self.is_stuck() => return stuck(),
                None => match self.wait(clock) {
                    Some(event) => self.deliver(event),
                    None => Ok(()),
                },
            };
            if let Err(error) = told
                && !self.flag.load(Ordering::Relaxed)
            {
                return Outcome::Threw(error);
            }
        }
    }

    /// Runs what the script has ready. An error here is one that no promise took.
    fn run_jobs(&self) {
        while !self.flag.load(Ordering::Relaxed) {
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return,
                // Only an interrupt or a lack of memory gets here; the first sets
                // the flag, the second leaves the script stuck or failed.
                Err(_) => {}
            }
        }
    }

    fn is_stuck(&self) -> bool {
        self.events.is_empty() && self.shared.state().tables.is_idle()
    }

    /// The next report; `None` when a timer is due first.
    fn wait(&mut self, clock: &tokio::runtime::Runtime) -> Option<Event> {
        let due = self.shared.state().tables.timers.next();
        let events = &mut self.events;
        clock.block_on(async {
            match due {
                None => events.recv().await,
                Some(due) => tokio::time::timeout_at(due.into(), events.recv())
                    .await
                    .unwrap_or(None),
            }
        })
    }

    fn deliver(&self, event: Event) -> Result<(), Box<ScriptError>> {
        match event {
            Event::Cancel => Ok(()),
            Event::Settled { ticket, result } => {
                let (kind, data) = {
                    let tables = &mut self.shared.state().tables;
                    tables.operations -= 1;
                    match result {
                        Settled::End => ("end", None),
                        Settled::Value(value) => ("value", Some(value::encode(tables, value))),
                        Settled::Error(error) => {
                            let error = value::encode_error(tables, error);
                            ("error", Some(serde_json::json!(["e", error])))
                        }
                    }
                };
                let text = data.map(|data| data.to_string()).unwrap_or_default();
                self.tell("settled", (ticket, kind, text))
            }
            Event::Invoke { id, args, reply } => {
                let (reply, args) = {
                    let tables = &mut self.shared.state().tables;
                    let args = value::encode(tables, capnweb::Value::Array(args));
                    (tables.add_reply(reply), args)
                };
                self.tell("invoked", (id, reply, args.to_string()))
            }
            Event::Dropped { id } => {
                self.shared.state().tables.exported -= 1;
                self.tell("dropped", (id,))
            }
        }
    }

    /// Calls an entry point of the prelude.
    fn tell<A>(&self, entry: &str, args: A) -> Result<(), Box<ScriptError>>
    where
        A: for<'js> rquickjs::function::IntoArgs<'js>,
    {
        self.context.with(|ctx| {
            let told = self.call(&ctx, entry, args);
            told.catch(&ctx).map_err(thrown)
        })
    }

    fn call<'js, A>(&self, ctx: &Ctx<'js>, entry: &str, args: A) -> rquickjs::Result<()>
    where
        A: rquickjs::function::IntoArgs<'js>,
    {
        let entries = self.entries.clone().restore(ctx)?;
        entries.get::<_, Function>(entry)?.call(args)
    }
}

/// The script waits for something that nobody will do.
fn stuck() -> Outcome {
    Outcome::Threw(Box::new(ScriptError::new(
        "Error",
        "the script never ends: it waits for a promise that nothing will settle",
    )))
}
