//! Replaces promises inside values by what they come to.

use std::sync::Arc;

use futures_util::future::try_join_all;

use crate::codes;
use crate::deferred::Deferred;
use crate::error::ErrorValue;
use crate::outcome::Outcome;
use crate::session::Admission;
use crate::stub::{Inner, Stub};
use crate::value::Value;

/// How deep a value may be after promises in it were replaced.
const DEPTH: usize = 256;
/// How often results may hold promises of results that hold promises.
const ROUNDS: usize = 64;

/// Waits for every promise in the value and puts the result in its place.
/// Fails with the first promise that does.
pub(crate) async fn settle(
    mut value: Value,
    admission: Option<&Admission>,
) -> Result<Value, ErrorValue> {
    for _ in 0..ROUNDS {
        if try_settle(&mut value, admission)? {
            return Ok(value);
        }
        // All at once: the first that fails ends it, whichever it is.
        let waits = unresolved(&value).into_iter().map(|deferred| async move {
            match deferred.wait().await {
                Outcome::Value(_) => Ok(()),
                Outcome::Rejected(error) => Err(error),
            }
        });
        let waited = try_join_all(waits).await;
        waited.map_err(Arc::unwrap_or_clone)?;
    }
    Err(too_complex())
}

/// Replaces the promises if all have come to something; says whether none is
/// left. What is copied into the arguments of a received call counts as theirs.
pub(crate) fn try_settle(
    value: &mut Value,
    admission: Option<&Admission>,
) -> Result<bool, ErrorValue> {
    for _ in 0..ROUNDS {
        let mut survey = Survey::default();
        survey.visit(value, 0);
        if survey.too_deep {
            return Err(too_complex());
        }
        if let Some(error) = survey.rejected {
            return Err(Arc::unwrap_or_clone(error));
        }
        if survey.promises == 0 {
            return Ok(true);
        }
        if !survey.unresolved.is_empty() {
            return Ok(false);
        }
        substitute(value, admission)?;
    }
    Err(too_complex())
}

fn too_complex() -> ErrorValue {
    ErrorValue::coded(codes::VALUE_TOO_COMPLEX, "The value is nested too deeply.")
}

fn unresolved(value: &Value) -> Vec<Arc<Deferred>> {
    let mut survey = Survey::default();
    survey.visit(value, 0);
    survey.unresolved
}

#[derive(Default)]
struct Survey {
    promises: usize,
    unresolved: Vec<Arc<Deferred>>,
    rejected: Option<Arc<ErrorValue>>,
    too_deep: bool,
}

impl Survey {
    fn visit(&mut self, value: &Value, depth: usize) {
        if depth >= DEPTH {
            self.too_deep = true;
            return;
        }
        match value {
            Value::Promise(stub) => {
                self.promises += 1;
                match stub.inner() {
                    Inner::Rejected(error) => self.rejected = Some(error.clone()),
                    Inner::Deferred(deferred) => match deferred.outcome() {
                        None => self.unresolved.push(deferred.clone()),
                        Some(Outcome::Rejected(error)) => self.rejected = Some(error),
                        Some(Outcome::Value(_)) => {}
                    },
                    Inner::Target(_) | Inner::Import(_) | Inner::Variable(_) => {}
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.visit(item, depth + 1)),
            Value::Object(object) => object
                .iter()
                .for_each(|(_, item)| self.visit(item, depth + 1)),
            Value::Error(error) => error
                .props
                .iter()
                .for_each(|(_, item)| self.visit(item, depth + 1)),
            Value::Request(request) => self.visit(&request.body, depth + 1),
            Value::Response(response) => self.visit(&response.body, depth + 1),
            _ => {}
        }
    }
}

fn substitute(value: &mut Value, admission: Option<&Admission>) -> Result<(), ErrorValue> {
    let next = |item: &mut Value| substitute(item, admission);
    match value {
        Value::Promise(stub) => *value = result_of(stub, admission)?,
        Value::Array(items) => items.iter_mut().try_for_each(next)?,
        Value::Object(object) => object.iter_mut().try_for_each(|(_, item)| next(item))?,
        Value::Error(error) => error
            .props
            .iter_mut()
            .try_for_each(|(_, item)| next(item))?,
        Value::Request(request) => next(&mut request.body)?,
        Value::Response(response) => next(&mut response.body)?,
        _ => {}
    }
    Ok(())
}

fn result_of(stub: &Stub, admission: Option<&Admission>) -> Result<Value, ErrorValue> {
    match stub.inner() {
        Inner::Rejected(error) => Err(ErrorValue::clone(error)),
        Inner::Variable(_) => Err(crate::map::variable()),
        Inner::Deferred(deferred) => match deferred.outcome() {
            Some(Outcome::Value(view)) => {
                if let Some(admission) = admission {
                    admission.grow(view.with(|value| value.weight()))?;
                }
                Ok(view.into_value())
            }
            Some(Outcome::Rejected(error)) => Err(Arc::unwrap_or_clone(error)),
            None => Ok(Value::Promise(stub.clone())),
        },
        Inner::Target(_) | Inner::Import(_) => Ok(Value::Stub(stub.clone())),
    }
}
