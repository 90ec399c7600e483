//! Room that several sessions share.

use std::sync::Arc;

use crate::meter::{Charge, Meter};

/// What the peers of several sessions, such as all of one user, may make this
/// side hold together. It stands beside each session's own
/// [`Limits`](crate::Limits): see [`Connection::share`](crate::Connection::share).
/// Clones share it.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    calls: Meter,
    most_calls: usize,
    bytes: Meter,
    most_bytes: usize,
}

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Calls,
    Bytes,
}

impl Budget {
    /// Room for so many calls that wait or run, and for so many bytes of
    /// arguments, unreleased results and unread streams together.
    pub fn new(calls: usize, bytes: usize) -> Self {
        Self(Arc::new(Inner {
            calls: Meter::default(),
            most_calls: calls,
            bytes: Meter::default(),
            most_bytes: bytes,
        }))
    }

    /// The calls that wait or run now.
    pub fn calls(&self) -> usize {
        self.0.calls.used()
    }

    /// The bytes that are held now.
    pub fn bytes(&self) -> usize {
        self.0.bytes.used()
    }

    pub(crate) fn charge(&self, kind: Kind, amount: usize) -> Option<Charge> {
        match kind {
            Kind::Calls => self.0.calls.charge(amount, self.0.most_calls),
            Kind::Bytes => self.0.bytes.charge(amount, self.0.most_bytes),
        }
    }
}
