//! The room that a received call takes.

use std::sync::{Arc, Mutex};

use super::shared::Shared;
use crate::budget::Kind;
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
        "Too many calls, or too much in their arguments, wait on this session or on others of the same caller; wait for some results first.",
    )
}

impl Admission {
    /// Admits a call whose message is so many bytes.
    pub(super) fn new(session: &Arc<Shared>, bytes: usize) -> Result<Self, ErrorValue> {
        let limits = session.limits();
        let calls = session.charge(&session.calls, Kind::Calls, 1, limits.pending_calls);
        let calls = calls.ok_or_else(too_many)?;
        let most = limits.pending_bytes;
        let bytes = session.charge(&session.call_bytes, Kind::Bytes, bytes, most);
        let bytes = bytes.ok_or_else(too_many)?;
        Ok(Self(Arc::new(Inner {
            session: session.clone(),
            charges: Mutex::new(vec![calls, bytes]),
        })))
    }

    /// Admits one more call on the same session.
    pub(crate) fn another(&self, bytes: usize) -> Result<Self, ErrorValue> {
        Self::new(&self.0.session, bytes)
    }

    /// Admits more bytes of arguments.
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), ErrorValue> {
        let session = &self.0.session;
        let limit = session.limits().pending_bytes;
        let charge = session.charge(&session.call_bytes, Kind::Bytes, bytes, limit);
        lock(&self.0.charges).push(charge.ok_or_else(too_many)?);
        Ok(())
    }

    /// The call has a result; it counts until the caller releases it.
    pub(crate) fn finish(&self, deferred: &Arc<Deferred>, outcome: Outcome) -> Outcome {
        let weight = match &outcome {
            Outcome::Value(view) => view.with(|value| value.weight()),
            Outcome::Rejected(error) => error.weight(),
        };
        let session = &self.0.session;
        match session.charge_result(weight) {
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
