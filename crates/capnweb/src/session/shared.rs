//! What all parts of a session share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use tokio::sync::watch;

use super::connection::{CloseReason, Stats};
use super::link::Lifeline;
use super::outbox::Outbox;
use super::tables::{ExportKind, ImportKind, Tables};
use crate::budget::{Budget, Kind};
use crate::codec::{Encoder, Place};
use crate::codes;
use crate::error::ErrorValue;
use crate::limits::Limits;
use crate::lock::lock;
use crate::meter::{Charge, Meter};
use crate::outcome::Outcome;
use crate::stub::Stub;
use crate::target::Target;
use crate::value::Value;

/// One session.
pub(crate) struct Shared {
    pub(super) tables: Mutex<Tables>,
    pub(super) outbox: Outbox,
    pub(super) calls: Meter,
    pub(super) call_bytes: Meter,
    pub(super) results: Meter,
    pub(super) stream_bytes: Meter,
    /// Results that the peer has asked for and not got.
    pub(super) asked: AtomicUsize,
    /// What it shares with other sessions.
    budget: Mutex<Option<Budget>>,
    limits: Mutex<Limits>,
    lifeline: OnceLock<Weak<Lifeline>>,
    let_go: AtomicBool,
    closed: watch::Sender<Option<CloseReason>>,
}

impl Shared {
    pub(super) fn new(main: Option<Arc<dyn Target>>, limits: Limits) -> (Arc<Self>, Arc<Lifeline>) {
        let main = match main {
            Some(target) => Stub::local(target),
            None => Stub::rejected(ErrorValue::new(
                "Error",
                "This connection has no main object.",
            )),
        };
        let shared = Arc::new(Self {
            tables: Mutex::new(Tables::new(main)),
            outbox: Outbox::default(),
            calls: Meter::default(),
            call_bytes: Meter::default(),
            results: Meter::default(),
            stream_bytes: Meter::default(),
            asked: AtomicUsize::new(0),
            budget: Mutex::default(),
            limits: Mutex::new(limits),
            lifeline: OnceLock::new(),
            let_go: AtomicBool::new(false),
            closed: watch::Sender::new(None),
        });
        let lifeline = Arc::new(Lifeline(Arc::downgrade(&shared)));
        let _ = shared.lifeline.set(Arc::downgrade(&lifeline));
        (shared, lifeline)
    }

    pub(super) fn lifeline(&self) -> Option<Arc<Lifeline>> {
        self.lifeline.get().and_then(Weak::upgrade)
    }

    pub(crate) fn limits(&self) -> Limits {
        *lock(&self.limits)
    }

    pub(super) fn set_limits(&self, limits: Limits) {
        *lock(&self.limits) = limits;
    }

    pub(super) fn share(&self, budget: Budget) {
        *lock(&self.budget) = Some(budget);
    }

    /// Takes room on this session and, if it shares some, with the others.
    pub(super) fn charge(
        &self,
        meter: &Meter,
        kind: Kind,
        amount: usize,
        most: usize,
    ) -> Option<Charge> {
        let charge = meter.charge(amount, most)?;
        match &*lock(&self.budget) {
            None => Some(charge),
            Some(budget) => Some(charge.with(budget.charge(kind, amount)?)),
        }
    }

    pub(super) fn charge_result(&self, weight: usize) -> Option<Charge> {
        let most = self.limits().result_bytes;
        self.charge(&self.results, Kind::Bytes, weight, most)
    }

    pub(super) fn stats(&self) -> Stats {
        let tables = lock(&self.tables);
        Stats {
            imports: tables.imports.len() + 1,
            exports: tables.exports.len(),
            pending_calls: self.calls.used(),
            pending_bytes: self.call_bytes.used(),
            result_bytes: self.results.used(),
            stream_bytes: self.stream_bytes.used(),
            queue_bytes: self.outbox.bytes(),
        }
    }

    /// Nobody here needs the session any more.
    pub(super) fn let_go(&self) {
        self.let_go.store(true, Ordering::Release);
        self.outbox.wake();
    }

    pub(super) fn is_let_go(&self) -> bool {
        self.let_go.load(Ordering::Acquire)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.borrow().is_some()
    }

    pub(super) async fn closed(&self) -> CloseReason {
        let mut closed = self.closed.subscribe();
        match closed.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(reason)) => reason.clone(),
            _ => CloseReason::Dropped,
        }
    }

    /// What a call fails with that was never sent.
    pub(super) fn gone(&self) -> ErrorValue {
        match &lock(&self.tables).closed {
            Some(reason) => reason.error(false),
            None => ErrorValue::coded(codes::CANCELED, "The reference was released."),
        }
    }

    /// Notes that nobody here holds an import any more.
    pub(super) fn note_released(&self, id: i64) {
        self.outbox.release(id);
    }

    /// A message that cannot wait. A peer that lets too many pile up is cut off.
    pub(super) fn post(&self, text: String) {
        if self.outbox.bytes().saturating_add(text.len()) > self.limits().queue_max_bytes {
            return self.close(CloseReason::Aborted(not_reading()));
        }
        self.outbox.push(text);
    }

    /// Ends the session: the first reason stays.
    pub(crate) fn close(&self, reason: CloseReason) {
        let (imports, exports) = {
            let mut tables = lock(&self.tables);
            if tables.closed.is_some() {
                return;
            }
            tables.closed = Some(reason.clone());
            tables.exported.clear();
            (
                std::mem::take(&mut tables.imports),
                std::mem::take(&mut tables.exports),
            )
        };
        let last = match &reason {
            CloseReason::Aborted(error) => Some(abort_message(error, &self.limits())),
            _ => None,
        };
        self.outbox
            .close(matches!(reason, CloseReason::Dropped), last);
        let error = Arc::new(reason.error(true));
        for import in imports.into_values() {
            match import.kind {
                ImportKind::Result(deferred) => {
                    if let Some(deferred) = deferred.upgrade() {
                        deferred.complete(Outcome::Rejected(error.clone()));
                    }
                }
                ImportKind::Write(flow, _) | ImportKind::Sink(_, flow) => flow.fail(error.clone()),
                ImportKind::Finish(done) => {
                    let _ = done.send(Err(error.clone()));
                }
                ImportKind::Stub(_) => {}
            }
        }
        for export in exports.into_values() {
            if let ExportKind::Sink { channel, .. } = &export.kind {
                channel.fail(error.clone());
            }
        }
        self.closed.send_replace(Some(reason));
    }
}

pub(super) fn not_reading() -> ErrorValue {
    ErrorValue::coded(
        codes::PEER_NOT_READING,
        "Too many messages wait for the peer to read them.",
    )
}

fn abort_message(error: &ErrorValue, limits: &Limits) -> String {
    let mut encoder = Encoder::new(Place::Bare, limits);
    encoder.raw("[\"abort\",");
    if encoder.value(&mut Value::from(error.clone()), 0).is_err() {
        return "[\"abort\",[\"error\",\"Error\",\"The session was aborted.\"]]".to_owned();
    }
    encoder.raw("]");
    encoder.into_text()
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Session").field(&self.stats()).finish()
    }
}
