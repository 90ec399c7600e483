//! Received messages.

use std::sync::Arc;
use std::time::Instant;

use super::connection::CloseReason;
use super::receive::Referent;
use super::send::release_message;
use super::shared::Shared;
use super::tables::{Export, ExportKind, Import, ImportKind};
use crate::codec::{Decoder, Fault, Scope};
use crate::codes;
use crate::deferred::Deferred;
use crate::dispatch::Action;
use crate::error::ErrorValue;
use crate::lock::lock;
use crate::outcome::{Outcome, View};
use crate::stream::Ack;
use crate::stub::Inner;
use crate::value::Value;

impl Shared {
    /// Takes one message. A breach of the protocol ends the session.
    pub(crate) fn receive(self: &Arc<Self>, text: &str) {
        if let Err(fault) = self.message(text) {
            self.close(CloseReason::Aborted(fault.into_error()));
        }
    }

    fn message(self: &Arc<Self>, text: &str) -> Result<(), Fault> {
        let limits = self.limits();
        if text.len() > limits.receive_bytes {
            return Err(Fault::Fatal(Box::new(too_large(limits.receive_bytes))));
        }
        let mut decoder = Decoder::new(text, Scope::Session(self), &limits);
        if !decoder.scan().take(b'[') || decoder.scan().peek() != Some(b'"') {
            return Err(bad(text));
        }
        let tag = decoder.scan().string()?;
        if tag == "pipe" {
            decoder.scan().expect(b']')?;
            decoder.finish()?;
            return self.open_pipe();
        }
        if !decoder.scan().take(b',') {
            return Err(bad(text));
        }
        match &*tag {
            "push" => self.push(&mut decoder),
            "stream" => self.stream(&mut decoder),
            "pull" => {
                let id = decoder.id(0)?;
                end(&mut decoder)?;
                self.pull(id)
            }
            "release" => {
                let id = decoder.id(0)?;
                if !decoder.scan().take(b',') {
                    return Err(bad(text));
                }
                let count = u64::try_from(decoder.id(0)?).map_err(|_| bad(text))?;
                end(&mut decoder)?;
                self.release(id, count)
            }
            "resolve" | "reject" => {
                let id = decoder.id(0)?;
                if !decoder.scan().take(b',') {
                    return Err(bad(text));
                }
                self.resolution(&mut decoder, id, &tag == "reject")
            }
            "abort" => {
                let error = match decoder.value(0) {
                    Ok(Value::Error(error)) => *error,
                    Ok(Value::String(text)) => ErrorValue::new("Error", text),
                    _ => ErrorValue::new("Error", "The peer aborted the session."),
                };
                self.close(CloseReason::PeerAborted(error));
                Ok(())
            }
            _ => Err(bad(text)),
        }
    }

    /// The value of an expression, or the error for which only it fails.
    fn expression(
        self: &Arc<Self>,
        decoder: &mut Decoder<'_>,
    ) -> Result<Result<Value, ErrorValue>, Fault> {
        match decoder.value(0) {
            Ok(value) => {
                end(decoder)?;
                Ok(Ok(value))
            }
            Err(Fault::Refused(error)) => Ok(Err(*error)),
            Err(fault) => Err(fault),
        }
    }

    fn push(self: &Arc<Self>, decoder: &mut Decoder<'_>) -> Result<(), Fault> {
        let id = lock(&self.tables).pushed_id();
        let before = decoder.cost();
        let value = self.expression(decoder)?;
        let size = decoder.cost().saturating_sub(before);
        let export = Export::new(ExportKind::Result(self.pushed(value, size)));
        self.add_pushed(id, export)
    }

    fn pushed(&self, value: Result<Value, ErrorValue>, size: usize) -> Arc<Deferred> {
        match value {
            Ok(Value::Promise(stub)) => match stub.inner() {
                Inner::Deferred(deferred) => deferred.clone(),
                Inner::Rejected(error) => Deferred::done(Outcome::Rejected(error.clone())),
                Inner::Variable(_) => Deferred::rejected(crate::map::variable()),
                Inner::Target(_) | Inner::Import(_) => {
                    Deferred::done(Ok(Value::Stub(stub.clone())).into())
                }
            },
            Ok(value) => match self.charge_result(size) {
                Some(charge) => {
                    let deferred = Deferred::done(Outcome::Value(View::new(value)));
                    deferred.hold_charge(charge);
                    deferred
                }
                None => Deferred::rejected(ErrorValue::coded(
                    codes::RESULTS_NOT_RELEASED,
                    "Values that were not released take too much room on this session.",
                )),
            },
            Err(error) => Deferred::rejected(error),
        }
    }

    /// A call whose result is sent unasked and not kept: the writes of streams.
    fn stream(self: &Arc<Self>, decoder: &mut Decoder<'_>) -> Result<(), Fault> {
        let id = lock(&self.tables).pushed_id();
        let before = decoder.cost();
        let call = match decoder.pipeline_call() {
            Ok(Some(call)) => {
                end(decoder)?;
                Some(call)
            }
            Ok(None) => None,
            Err(Fault::Refused(error)) => {
                self.post(self.reject_message(id, &error));
                return Ok(());
            }
            Err(fault) => return Err(fault),
        };
        let deferred = match call {
            Some(call) => {
                let size = decoder.cost().saturating_sub(before);
                match self.referent(call.id)? {
                    Referent::Sink(channel) => {
                        let session = self.clone();
                        let ack = Ack::new(move |result| {
                            session.post(match result {
                                Ok(()) => format!("[\"resolve\",{id},[\"undefined\"]]"),
                                Err(error) => session.reject_message(id, &error),
                            });
                        });
                        self.on_sink(&channel, &call.path, Action::Call(call.args), size, ack);
                        return Ok(());
                    }
                    referent => self.refer_op(referent, call.path, Action::Call(call.args), size),
                }
            }
            None => {
                let value = self.expression(decoder)?;
                let size = decoder.cost().saturating_sub(before);
                self.pushed(value, size)
            }
        };
        let mut export = Export::new(ExportKind::Result(deferred.clone()));
        export.auto_release = true;
        self.add_pushed(id, export)?;
        self.resolve_when_done(id, deferred);
        Ok(())
    }

    fn pull(self: &Arc<Self>, id: i64) -> Result<(), Fault> {
        let deferred = {
            let tables = lock(&self.tables);
            match tables.exports.get(&id) {
                None if tables.closed.is_some() => return Ok(()),
                None => return Err(Fault::fatal(format!("no such export ID: {id}"))),
                Some(export) if export.resolver.is_some() => return Ok(()),
                Some(export) => match &export.kind {
                    ExportKind::Result(deferred) => deferred.clone(),
                    ExportKind::Stub(_) | ExportKind::Sink { .. } => Deferred::rejected(
                        ErrorValue::new("Error", "Tried to resolve a non-promise stub."),
                    ),
                },
            }
        };
        self.resolve_when_done(id, deferred);
        Ok(())
    }

    fn release(&self, id: i64, count: u64) -> Result<(), Fault> {
        let mut tables = lock(&self.tables);
        let Some(export) = tables.exports.get_mut(&id) else {
            if tables.closed.is_some() {
                return Ok(());
            }
            return Err(Fault::fatal(format!("no such export ID: {id}")));
        };
        let Some(left) = export.refcount.checked_sub(count) else {
            return Err(Fault::fatal(format!(
                "refcount would go negative: {} < {count}",
                export.refcount
            )));
        };
        export.refcount = left;
        if left > 0 {
            return Ok(());
        }
        let export = tables.remove_export(id);
        drop(tables);
        if let Some(ExportKind::Sink { channel, .. }) = export.as_ref().map(|export| &export.kind) {
            channel.fail(Arc::new(ErrorValue::coded(
                codes::STREAM_CLOSED,
                "WritableStream RPC stub was disposed without calling close()",
            )));
        }
        drop(export);
        Ok(())
    }

    fn resolution(
        self: &Arc<Self>,
        decoder: &mut Decoder<'_>,
        id: i64,
        rejected: bool,
    ) -> Result<(), Fault> {
        let value = self.expression(decoder)?;
        let outcome = match value {
            Ok(value) if rejected => Outcome::Rejected(Arc::new(as_error(value))),
            Ok(value) => Outcome::Value(View::new(value)),
            Err(error) => Outcome::Rejected(Arc::new(error)),
        };
        let deferred = {
            let mut tables = lock(&self.tables);
            let Some(import) = tables.imports.get_mut(&id) else {
                drop(tables);
                drop(outcome);
                return Ok(());
            };
            match &import.kind {
                ImportKind::Stub(_) => None,
                ImportKind::Sink(_, flow) => {
                    if let Outcome::Rejected(error) = &outcome {
                        flow.fail(error.clone());
                    }
                    None
                }
                ImportKind::Result(_) if import.resolved => None,
                ImportKind::Result(deferred) => {
                    let deferred = deferred.upgrade();
                    if import.pins > 0 {
                        import.resolved = true;
                    } else {
                        let refcount = import.refcount;
                        tables.imports.remove(&id);
                        self.outbox.push(release_message(id, refcount));
                    }
                    deferred
                }
                ImportKind::Write(..) | ImportKind::Finish(_) => {
                    let import = tables.imports.remove(&id);
                    drop(tables);
                    if let Some(import) = import {
                        answered(import, outcome);
                    }
                    return Ok(());
                }
            }
        };
        if let Some(deferred) = deferred {
            deferred.complete(outcome);
        }
        Ok(())
    }
}

/// The peer has taken, or refused, a write or the end of a stream.
fn answered(import: Import, outcome: Outcome) {
    match (import.kind, outcome) {
        (ImportKind::Write(flow, sent), Outcome::Value(_)) => {
            flow.acknowledged(&sent, Instant::now())
        }
        (ImportKind::Write(flow, _), Outcome::Rejected(error)) => flow.fail(error),
        (ImportKind::Finish(done), Outcome::Value(_)) => {
            let _ = done.send(Ok(()));
        }
        (ImportKind::Finish(done), Outcome::Rejected(error)) => {
            let _ = done.send(Err(error));
        }
        (ImportKind::Stub(_) | ImportKind::Sink(..) | ImportKind::Result(_), _) => {}
    }
}

fn as_error(value: Value) -> ErrorValue {
    match value {
        Value::Error(error) => *error,
        Value::String(text) => ErrorValue::new("Error", text).said_by_peer(),
        other => ErrorValue::new("Error", "The peer rejected the call.")
            .with_prop("reason", other)
            .said_by_peer(),
    }
}

fn end(decoder: &mut Decoder<'_>) -> Result<(), Fault> {
    decoder.scan().expect(b']')?;
    decoder.finish()
}

fn bad(text: &str) -> Fault {
    let shown: String = text.chars().take(64).collect();
    Fault::fatal(format!("bad RPC message: {shown}"))
}

pub(crate) fn too_large(limit: usize) -> ErrorValue {
    ErrorValue::coded(
        codes::MESSAGE_TOO_LARGE,
        format!("Incoming message exceeds maximum size of {limit} bytes."),
    )
}
