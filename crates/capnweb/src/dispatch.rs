//! Where a call goes: to a target here, to the peer, or into the queue of a
//! result that is still to come.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::ready;

use crate::deferred::{Deferred, Work, panicked};
use crate::error::ErrorValue;
use crate::map::{self, Mapped, Mapping};
use crate::outcome::{Found, Outcome, View, has_reserved};
use crate::path::Path;
use crate::promises;
use crate::session::Admission;
use crate::stub::{Inner, Stub};
use crate::target::{CallFuture, Target, not_a_function};
use crate::value::Value;

/// What to do with what a path leads to.
pub(crate) enum Action {
    /// Read it.
    Get,
    /// Call it.
    Call(Vec<Value>),
    /// Apply a function to it or to its elements.
    Map(Box<Mapping>),
}

/// A call, the reading of a property, or a map.
pub(crate) struct Op {
    pub(crate) path: Path,
    pub(crate) action: Action,
    /// The room that a received call takes.
    pub(crate) admission: Option<Admission>,
}

impl Op {
    pub(crate) fn call(path: Path, args: Vec<Value>) -> Self {
        Self::new(path, Action::Call(args))
    }

    pub(crate) fn get(path: Path) -> Self {
        Self::new(path, Action::Get)
    }

    pub(crate) fn map(path: Path, mapping: Mapping) -> Self {
        Self::new(path, Action::Map(Box::new(mapping)))
    }

    fn new(path: Path, action: Action) -> Self {
        Self {
            path,
            action,
            admission: None,
        }
    }

    fn refusal(&self) -> ErrorValue {
        not_a_function(&self.path)
    }
}

/// Calls on a reference.
pub(crate) fn on_stub(stub: &Stub, mut op: Op) -> Arc<Deferred> {
    match stub.inner() {
        Inner::Rejected(error) => Deferred::done(Outcome::Rejected(error.clone())),
        Inner::Variable(_) => Deferred::rejected(map::variable()),
        Inner::Deferred(deferred) => on_deferred(deferred, op),
        Inner::Import(link) => {
            if matches!(op.action, Action::Get) && op.path.is_empty() {
                return Deferred::done(Outcome::Value(View::new(Value::Stub(stub.clone()))));
            }
            let admission = op.admission.take();
            match link.send(op) {
                Ok(sent) => admitted(sent, admission),
                Err(_) => Deferred::rejected(link.gone()),
            }
        }
        Inner::Target(target) => match op {
            Op {
                path,
                action: Action::Map(mapping),
                admission,
            } => {
                // First the property, then what is to be done with it.
                let got = on_stub(stub, Op::get(path));
                let rest = Op {
                    admission,
                    ..Op::new(Path::new(), Action::Map(mapping))
                };
                on_deferred(&got, rest)
            }
            op => {
                let result = Deferred::waiting();
                start_on_target(stub, target, op, &result);
                result
            }
        },
    }
}

/// Calls on a result that may be still to come.
pub(crate) fn on_deferred(deferred: &Arc<Deferred>, mut op: Op) -> Arc<Deferred> {
    let origin = deferred.origin();
    if let Some(outcome) = origin.outcome() {
        let result = Deferred::waiting();
        let mut work = Work::default();
        start(&outcome, op, &result, &mut work);
        work.run();
        return result;
    }
    if let Some(link) = origin.link() {
        let admission = op.admission.take();
        match link.send(op) {
            Ok(sent) => return admitted(sent, admission),
            Err(back) => op = Op { admission, ..back },
        }
    }
    let result = Deferred::waiting();
    result.set_base(deferred.clone());
    let weak = Arc::downgrade(&result);
    origin.subscribe(move |outcome, work| {
        if let Some(result) = weak.upgrade() {
            start(outcome, op, &result, work);
        }
    });
    result
}

fn admitted(sent: Arc<Deferred>, admission: Option<Admission>) -> Arc<Deferred> {
    match admission {
        None => sent,
        Some(admission) => {
            Deferred::alias_of(sent, move |this, outcome| admission.finish(this, outcome))
        }
    }
}

fn start(outcome: &Outcome, op: Op, result: &Arc<Deferred>, work: &mut Work) {
    let view = match outcome {
        Outcome::Rejected(error) => {
            return work.push(result.clone(), Outcome::Rejected(error.clone()));
        }
        Outcome::Value(view) => view,
    };
    if has_reserved(&op.path) {
        return work.push(result.clone(), reserved(&op).into());
    }
    match view.find(op.path.clone()) {
        Err(error) => work.push(result.clone(), Err(error).into()),
        // A map of an object itself.
        Ok(Found::Stub(stub, path))
            if path.is_empty() && stub.is_local() && matches!(op.action, Action::Map(_)) =>
        {
            start_on_data(View::new(stub.into()), op, result, work);
        }
        Ok(Found::Stub(stub, path)) => start_on_stub(&stub, Op { path, ..op }, result, work),
        Ok(Found::Data(view)) => start_on_data(view, op, result, work),
    }
}

fn start_on_data(view: View, op: Op, result: &Arc<Deferred>, work: &mut Work) {
    let mapping = match op.action {
        Action::Get => return work.push(result.clone(), Outcome::Value(view)),
        Action::Call(_) => return work.push(result.clone(), Err(op.refusal()).into()),
        Action::Map(mapping) => mapping,
    };
    let admission = op.admission;
    let finish = move |this: &Arc<Deferred>, outcome: Outcome| match admission {
        Some(admission) => admission.finish(this, outcome),
        None => outcome,
    };
    match mapping.apply(&view) {
        Mapped::Done(mapped) => {
            let outcome = finish(result, mapped.into());
            work.push(result.clone(), outcome);
        }
        Mapped::Waiting(mapped) => result.run(mapped, finish),
    }
}

fn start_on_stub(stub: &Stub, mut op: Op, result: &Arc<Deferred>, work: &mut Work) {
    if let Inner::Target(target) = stub.inner()
        && !matches!(op.action, Action::Map(_))
    {
        return start_on_target(stub, target, op, result);
    }
    let admission = op.admission.take();
    let finish = move |this: &Arc<Deferred>, outcome: Outcome| match admission {
        Some(admission) => admission.finish(this, outcome),
        None => outcome,
    };
    let called = on_stub(stub, op);
    if let Some(outcome) = called.outcome() {
        let outcome = finish(result, outcome);
        return work.push(result.clone(), outcome);
    }
    result.set_base(called.clone());
    called.demand();
    let weak = Arc::downgrade(result);
    called.subscribe(move |outcome, work| {
        if let Some(result) = weak.upgrade() {
            let outcome = finish(&result, outcome.clone());
            work.push(result, outcome);
        }
    });
}

/// What a path over a name of every JavaScript object leads to.
fn reserved(op: &Op) -> Result<Value, ErrorValue> {
    match op.action {
        Action::Call(_) => Err(op.refusal()),
        Action::Get | Action::Map(_) => Ok(Value::Undefined),
    }
}

fn start_on_target(stub: &Stub, target: &Arc<dyn Target>, op: Op, result: &Arc<Deferred>) {
    let refused = has_reserved(&op.path).then(|| reserved(&op));
    let Op {
        path,
        action,
        admission,
    } = op;
    let future = match (refused, action) {
        (Some(outcome), _) => ready(outcome).boxed(),
        (None, Action::Call(args)) => call_when_settled(target, path, args, admission.as_ref()),
        (None, _) if path.is_empty() => ready(Ok(Value::Stub(stub.clone()))).boxed(),
        (None, _) => guarded(|| target.clone().get(path)),
    };
    result.run(future, move |this, outcome| match admission {
        Some(admission) => admission.finish(this, outcome),
        None => outcome,
    });
}

/// Starts the call at once if no argument is still to come.
fn call_when_settled(
    target: &Arc<dyn Target>,
    path: Path,
    args: Vec<Value>,
    admission: Option<&Admission>,
) -> CallFuture {
    let mut args = Value::Array(args);
    match promises::try_settle(&mut args, admission) {
        Err(error) => ready(Err(error)).boxed(),
        Ok(true) => guarded(|| target.clone().call(path, items(args))),
        Ok(false) => {
            let target = target.clone();
            let admission = admission.cloned();
            async move {
                let args = promises::settle(args, admission.as_ref()).await?;
                guarded(|| target.call(path, items(args))).await
            }
            .boxed()
        }
    }
}

fn items(args: Value) -> Vec<Value> {
    match args {
        Value::Array(items) => items,
        other => vec![other],
    }
}

/// A target that panics fails its own call only.
fn guarded(start: impl FnOnce() -> CallFuture) -> CallFuture {
    catch_unwind(AssertUnwindSafe(start)).unwrap_or_else(|_| ready(Err(panicked())).boxed())
}
