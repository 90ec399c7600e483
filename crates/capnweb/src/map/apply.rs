//! Applies a function that came as expressions.

use std::cell::RefCell;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::{Instructions, Mapping};
use crate::codec::{Decoder, Fault, Scope, Use};
use crate::deferred::Deferred;
use crate::dispatch::{self, Action, Op};
use crate::error::ErrorValue;
use crate::outcome::{Outcome, View};
use crate::path::Key;
use crate::promises;
use crate::stub::{Inner, Stub};
use crate::target::CallFuture;
use crate::value::Value;

/// What a map came to.
pub(crate) enum Mapped {
    Done(Result<Value, ErrorValue>),
    /// Calls of it are under way.
    Waiting(CallFuture),
}

/// One run of a function.
pub(crate) struct Frame<'a> {
    mapping: &'a Mapping,
    variables: Vec<Arc<Deferred>>,
    /// Calls under way, also those that the result does not need: they run to
    /// their end as they would had the peer made them itself.
    calls: RefCell<Vec<Arc<Deferred>>>,
}

enum Shape {
    Nothing(Value),
    One,
    List(usize),
}

impl Mapping {
    /// Applies the function. Calls start at once and in order.
    pub(crate) fn apply(&self, view: &View) -> Mapped {
        let shape = view.with(|value| match value {
            Value::Undefined => Shape::Nothing(Value::Undefined),
            Value::Null => Shape::Nothing(Value::Null),
            Value::Array(items) => Shape::List(items.len()),
            _ => Shape::One,
        });
        let mut calls = Vec::new();
        let value = match shape {
            Shape::Nothing(value) => return Mapped::Done(Ok(value)),
            Shape::One => self.element(view.clone(), &mut calls),
            Shape::List(length) => (0..length)
                .map(|index| self.element(view.below(&[Key::Index(index as u64)]), &mut calls))
                .collect::<Result<Vec<_>, _>>()
                .map(Value::Array),
        };
        let mut value = match value {
            Ok(value) => value,
            Err(error) => return Mapped::Done(Err(error)),
        };
        calls.retain(|call| call.outcome().is_none());
        match promises::try_settle(&mut value, self.admission.as_ref()) {
            Err(error) => Mapped::Done(Err(error)),
            Ok(true) if calls.is_empty() => Mapped::Done(Ok(value)),
            Ok(_) => Mapped::Waiting(self.clone().finish(value, calls)),
        }
    }

    fn finish(self, value: Value, calls: Vec<Arc<Deferred>>) -> CallFuture {
        async move {
            // The peer is asked for all at once, not for one after the other.
            calls.iter().for_each(|call| call.demand());
            let value = promises::settle(value, self.admission.as_ref()).await?;
            for call in calls {
                call.wait().await;
            }
            Ok(value)
        }
        .boxed()
    }

    fn element(&self, input: View, calls: &mut Vec<Arc<Deferred>>) -> Result<Value, ErrorValue> {
        let mut frame = Frame {
            mapping: self,
            variables: vec![Deferred::done(Outcome::Value(input))],
            calls: RefCell::default(),
        };
        let mut last = None;
        for text in self.instructions.iter() {
            if let Some(value) = last.take() {
                frame.variables.push(variable_of(value));
            }
            last = Some(frame.read(text)?);
        }
        calls.append(&mut frame.calls.borrow_mut());
        last.ok_or_else(|| ErrorValue::new("Error", "Invalid empty mapper function."))
    }
}

fn variable_of(value: Value) -> Arc<Deferred> {
    match value {
        Value::Promise(stub) => match stub.inner() {
            Inner::Deferred(deferred) => deferred.clone(),
            _ => Deferred::done(Ok(Value::Stub(stub)).into()),
        },
        value => Deferred::done(Ok(value).into()),
    }
}

impl Frame<'_> {
    fn read(&self, text: &str) -> Result<Value, ErrorValue> {
        self.mapping.pay(text.len())?;
        let mut decoder = Decoder::new(text, Scope::Map(self), &self.mapping.limits);
        let read = decoder.value(self.mapping.depth + 1);
        let value = read.and_then(|value| decoder.finish().map(|()| value));
        let value = value.map_err(Fault::into_error)?;
        if let Some(admission) = &self.mapping.admission {
            admission.grow(decoder.cost())?;
        }
        Ok(value)
    }

    fn at(&self, id: i64) -> Result<Stub, Fault> {
        let found = match usize::try_from(id) {
            Ok(index) => self.variables.get(index).cloned().map(Stub::deferred),
            Err(_) => usize::try_from(-(id + 1))
                .ok()
                .and_then(|index| self.mapping.captures.get(index).cloned()),
        };
        found.ok_or_else(|| Fault::fatal(format!("The map has no variable {id}.")))
    }

    /// A variable or capture, a part of it, or a call on it.
    pub(crate) fn refer(&self, id: i64, use_of: Use, size: usize) -> Result<Stub, Fault> {
        let stub = self.at(id)?;
        let Use::Op(path, mut action) = use_of else {
            return Ok(stub);
        };
        let admission = match &self.mapping.admission {
            None => None,
            Some(admission) => match admission.another(size) {
                Ok(admission) => Some(admission),
                Err(error) => return Ok(Stub::rejected(error)),
            },
        };
        if let (Action::Map(mapping), Some(admission)) = (&mut action, &admission) {
            mapping.admit(admission.clone());
        }
        let op = Op {
            path,
            action,
            admission,
        };
        let result = dispatch::on_stub(&stub, op);
        self.calls.borrow_mut().push(result.clone());
        Ok(Stub::deferred(result))
    }

    /// A map inside this one.
    pub(crate) fn nested(
        &self,
        captures: Vec<Stub>,
        instructions: Instructions,
        depth: usize,
    ) -> Result<Mapping, Fault> {
        let inner = self.mapping.inner(captures, instructions, depth);
        inner.map_err(|error| Fault::Refused(Box::new(error)))
    }
}
