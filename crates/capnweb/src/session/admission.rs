//! The room that a received call takes.

use std::sync::{Arc, Mutex};

use super::shared::Shared;
use crate::codes;
use crate::deferred::Deferred;
use crate::error::ErrorValue;
use crate::lock::lock;
use crate::meter::Charge;
use crate::outcome::Outcome;

/// A received call's share of the limits, held until it has a result.
#[derive(Clone)]
pub(crate) struct Admission(Arc<Inner>);

struct Inner {
    session: Arc<Shared>,
    charges: Mutex<Vec<Charge>>,
}

fn too_many() -> ErrorValue {
    ErrorValue::coded(
        codes::TOO_MANY_CALLS,
        "Too many calls, or too much in their arguments, wait on this session; wait for some results first.",
    )
}

impl Admission {
    /// Admits a call whose message is so many bytes.
    pub(super) fn new(session: &Arc<Shared>, bytes: usize) -> Result<Self, ErrorValue> {
        let limits = session.limits();
        let calls = session
            .calls
            .charge(1, limits.pending_calls)
            .ok_or_else(too_many)?;
        let bytes = session
            .call_bytes
            .charge(bytes, limits.pending_bytes)
            .ok_or_else(too_many)?;
        Ok(Self(Arc::new(Inner {
            session: session.clone(),
            charges: Mutex::new(vec![calls, bytes]),
        })))
    }

    /// Admits more bytes of arguments.
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), ErrorValue> {
        let session = &self.0.session;
        let limit = session.limits().pending_bytes;
        let charge = session
            .call_bytes
            .charge(bytes, limit)
            .ok_or_else(too_many)?;
        lock(&self.0.charges).push(charge);
        Ok(())
    }

    /// The call has a result; it counts until the caller releases it.
    pub(crate) fn finish(&self, deferred: &Arc<Deferred>, outcome: Outcome) -> Outcome {
        let weight = match &outcome {
            Outcome::Value(view) => view.with(|value| value.weight()),
            Outcome::Rejected(error) => error.weight(),
        };
        let session = &self.0.session;
        match session.results.charge(weight, session.limits().result_bytes) {
            Some(charge) => {
                deferred.hold_charge(charge);
                outcome
            }
            None => Err(ErrorValue::coded(
                codes::RESULTS_NOT_RELEASED,
                "Results that were not released take too much room on this session; release some first.",
            ))
            .into(),
        }
    }
}
