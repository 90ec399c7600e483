//! The engine's thread: it runs the script until it must wait, and then waits
//! for what operations, timers and the server report.

use super::{
    host::Tables,
    host_functions,
    outcome::{Outcome, ScriptError},
    prelude,
    rejections::Rejections,
    settle::{Operations, Settled},
    streams,
    turns::Turns,
};
use capnweb::{ErrorValue, Stub, Value};
use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Function, Object, Persistent, Runtime,
    context::EvalOptions,
};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};

/// Reports that may wait for the script.
const EVENTS: usize = 256;

/// What a script may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: usize,
    /// Bytes of stack.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 512 << 20,
            stack: 1 << 20,
        }
    }
}

/// What to run.
#[derive(Debug)]
pub struct Script {
    /// Name shown in stack traces.
    pub name: String,
    /// Body of an async function with `itx` in scope.
    pub source: String,
    /// Spaces to indent the printed value by; 0 for one line.
    pub indent: u8,
}

/// Something that the script has to hear of.
pub enum Event {
    /// An operation ended.
    Settled { ticket: u32, result: Settled },
    /// The server calls a function of the script.
    Invoke {
        id: u32,
        args: Vec<Value>,
        reply: oneshot::Sender<Result<Value, ErrorValue>>,
    },
    /// The server let go of a function of the script.
    Dropped { id: u32 },
    /// The script is to stop.
    Cancel,
}

/// Stops a script from outside.
#[derive(Debug, Clone)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    events: mpsc::Sender<Event>,
}

impl Cancel {
    /// Stops the script, also one that computes without end.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
        // A full queue wakes the script just as well.
        let _ = self.events.try_send(Event::Cancel);
    }
}

/// State that host functions share.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<State>>);

/// What is behind [`Shared`].
pub struct State {
    /// What the script's numbers stand for.
    pub tables: Tables,
    /// Operations under way.
    pub operations: Operations,
    /// Promises that nobody caught.
    pub rejections: Rejections,
    /// How the script ended, once it has.
    pub outcome: Option<Outcome>,
}

impl Shared {
    /// The state. Only the engine's thread takes it, so it is always free.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a script with `itx` standing for the object behind the stub. The future
/// ends with the script; the other value stops it early.
pub fn run(script: Script, itx: Stub, limits: Limits) -> (Cancel, impl Future<Output = Outcome>) {
    let (sender, events) = mpsc::channel(EVENTS);
    let cancel = Cancel {
        flag: Arc::default(),
        events: sender.clone(),
    };
    let flag = cancel.flag.clone();
    let runtime = Handle::current();
    let (done, outcome) = oneshot::channel();
    let work = move || {
        let _ = done.send(on_thread(
            &script, itx, limits, runtime, sender, events, flag,
        ));
    };
    let thread = std::thread::Builder::new()
        .name("itx".to_owned())
        // The engine counts only its own frames.
        .stack_size(limits.stack.saturating_mul(4).max(8 << 20))
        .spawn(work);
    let wait = async move {
        let failed = Outcome::internal::<String>;
        match thread {
            Err(error) => failed(format!("cannot start the engine: {error}")),
            Ok(_) => outcome
                .await
                .unwrap_or_else(|_| failed("the engine ended".to_owned())),
        }
    };
    (cancel, wait)
}

fn on_thread(
    script: &Script,
    itx: Stub,
    limits: Limits,
    handle: Handle,
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
    flag: Arc<AtomicBool>,
) -> Outcome {
    let failed = |error: &dyn std::fmt::Display| Outcome::internal(error.to_string());
    let (runtime, context) = match engine(limits, flag.clone()) {
        Ok(made) => made,
        Err(error) => return failed(&error),
    };
    let clock = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let clock = match clock {
        Ok(clock) => clock,
        Err(error) => return failed(&error),
    };
    // Sending a stream starts tasks of the session, from this thread.
    let entered = handle.clone();
    let _entered = entered.enter();
    let shared = Shared(Arc::new(Mutex::new(State {
        tables: Tables::new(sender),
        operations: Operations::new(handle),
        rejections: Rejections::watch(&runtime),
        outcome: None,
    })));
    let main = shared.state().tables.add_object(itx);
    let started = context.with(|ctx| {
        let entries = load(&ctx, &shared).catch(&ctx).map_err(thrown)?;
        begin(&ctx, script, main, &entries)
            .catch(&ctx)
            .map_err(thrown)?;
        Ok(Persistent::save(&ctx, entries))
    });
    match started {
        Err(_) if flag.load(Ordering::Relaxed) => Outcome::Canceled,
        Err(error) => Outcome::Threw(error),
        Ok(entries) => Turns {
            entries,
            context,
            runtime,
            shared,
            flag,
            events,
        }
        .until_end(&clock),
    }
}

fn engine(limits: Limits, flag: Arc<AtomicBool>) -> rquickjs::Result<(Runtime, Context)> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(limits.memory);
    runtime.set_max_stack_size(limits.stack);
    runtime.set_interrupt_handler(Some(Box::new(move || flag.load(Ordering::Relaxed))));
    let context = Context::full(&runtime)?;
    Ok((runtime, context))
}

/// Evaluates the prelude and answers its entry points.
fn load<'js>(ctx: &Ctx<'js>, shared: &Shared) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    host_functions::install(ctx, &host, shared)?;
    streams::install(ctx, &host, shared)?;
    let mut options = EvalOptions::default();
    options.filename = Some("hutch:prelude".to_owned());
    let make: Function = ctx.eval_with_options(prelude::source(), options)?;
    make.call((host,))
}

/// Starts the script.
fn begin<'js>(
    ctx: &Ctx<'js>,
    script: &Script,
    main: u32,
    entries: &Object<'js>,
) -> rquickjs::Result<()> {
    let mut options = EvalOptions::default();
    options.filename = Some(script.name.clone());
    // On one line with the script's first, so that line numbers are the script's.
    let source = format!("(async (itx) => {{{}\n}})", script.source);
    let function: Function = ctx.eval_with_options(source, options)?;
    entries
        .get::<_, Function>("run")?
        .call((function, main, script.indent))
}

/// What a script or the prelude threw before anything could catch it.
pub fn thrown(error: CaughtError<'_>) -> Box<ScriptError> {
    Box::new(match error {
        CaughtError::Exception(exception) => {
            let name = exception.as_object().get::<_, String>("name");
            ScriptError {
                stack: exception.stack(),
                ..ScriptError::new(
                    name.as_deref().unwrap_or("Error"),
                    exception.message().unwrap_or_default(),
                )
            }
        }
        other => ScriptError::new("InternalError", other.to_string()),
    })
}
