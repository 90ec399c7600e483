//! Gives what a message refers to its place in the tables.

use std::sync::Arc;

use super::link::ImportLink;
use super::send::imports_full;
use super::shared::Shared;
use super::tables::{Export, ExportKind, Import, ImportKind};
use crate::codes;
use crate::deferred::Deferred;
use crate::error::ErrorValue;
use crate::lock::lock;
use crate::outcome::Outcome;
use crate::stream::flow::Flow;
use crate::stream::{ReadableStream, RemoteSink, Sink, WritableStream, pump};
use crate::stub::{Inner, Stub};
use crate::task;

/// The places that one message takes. Dropped without
/// [`commit`](Self::commit), it gives them back.
pub(crate) struct Exporter<'a> {
    session: &'a Arc<Shared>,
    /// Exports, each counted once.
    exports: Vec<i64>,
    /// Promises whose outcome is to be sent.
    promises: Vec<(i64, Arc<Deferred>)>,
    /// Streams to start.
    pumps: Vec<(ReadableStream, WritableStream)>,
    pins: Vec<i64>,
}

impl<'a> Exporter<'a> {
    pub(crate) fn new(session: &'a Arc<Shared>) -> Self {
        Self {
            session,
            exports: Vec::new(),
            promises: Vec::new(),
            pumps: Vec::new(),
            pins: Vec::new(),
        }
    }

    /// The id of a reference that is the peer's own.
    pub(crate) fn import_of(&mut self, stub: &Stub) -> Option<i64> {
        match stub.inner() {
            Inner::Import(link) if Arc::ptr_eq(link.session(), self.session) => Some(link.id()),
            Inner::Deferred(deferred) => {
                let link = deferred.origin().link()?;
                if Arc::ptr_eq(link.session(), self.session) && self.session.pin(link.id()) {
                    self.pins.push(link.id());
                    return Some(link.id());
                }
                None
            }
            _ => None,
        }
    }

    fn add(&mut self, kind: ExportKind) -> Result<i64, ErrorValue> {
        let limit = self.session.limits().exports;
        let mut tables = lock(&self.session.tables);
        if let Some(reason) = &tables.closed {
            return Err(reason.error(false));
        }
        if tables.exports.len() >= limit {
            return Err(ErrorValue::coded(
                codes::TABLE_FULL,
                "The peer refers to too many objects of this session.",
            ));
        }
        let id = tables.export_id();
        if let ExportKind::Stub(stub) = &kind {
            tables.exported.insert(stub.identity(), id);
        }
        tables.exports.insert(id, Export::new(kind));
        self.exports.push(id);
        Ok(id)
    }

    /// A place for an object; the one it has, if it has one.
    pub(crate) fn export(&mut self, stub: &Stub) -> Result<i64, ErrorValue> {
        {
            let mut tables = lock(&self.session.tables);
            let known = tables.exported.get(&stub.identity()).copied();
            if let Some(id) = known
                && let Some(export) = tables.exports.get_mut(&id)
            {
                export.refcount += 1;
                self.exports.push(id);
                return Ok(id);
            }
        }
        self.add(ExportKind::Stub(stub.clone()))
    }

    /// A place for a result whose outcome will be sent unasked.
    pub(crate) fn export_promise(&mut self, stub: &Stub) -> Result<i64, ErrorValue> {
        let deferred = match stub.inner() {
            Inner::Deferred(deferred) => deferred.clone(),
            Inner::Rejected(error) => Deferred::done(Outcome::Rejected(error.clone())),
            Inner::Variable(_) => Deferred::rejected(crate::map::variable()),
            Inner::Target(_) | Inner::Import(_) => {
                Deferred::done(Outcome::from(Ok(stub.clone().into())))
            }
        };
        let id = self.add(ExportKind::Result(deferred.clone()))?;
        self.promises.push((id, deferred));
        Ok(id)
    }

    /// A pipe to the peer for a stream of this side.
    pub(crate) fn pipe(&mut self, stream: ReadableStream) -> Result<i64, ErrorValue> {
        let limits = self.session.limits();
        let lifeline = self.session.lifeline();
        let mut tables = lock(&self.session.tables);
        if let Some(reason) = &tables.closed {
            return Err(reason.error(false));
        }
        if tables.imports.len() >= limits.imports {
            return Err(imports_full());
        }
        let id = tables.import_id();
        let inner = Arc::new(Inner::Import(ImportLink::new(
            self.session.clone(),
            id,
            lifeline,
        )));
        let flow = Flow::new(limits.stream_window);
        let import = Import::new(ImportKind::Sink(Arc::downgrade(&inner), flow.clone()));
        tables.imports.insert(id, import);
        self.session.outbox.push("[\"pipe\"]".to_owned());
        drop(tables);
        let sink = RemoteSink::new(Stub::from_arc(inner), self.session.clone(), id, flow);
        self.pumps.push((stream, WritableStream::remote(sink)));
        Ok(id)
    }

    /// A place for a sink.
    pub(crate) fn writable(&mut self, stream: WritableStream) -> Result<i64, ErrorValue> {
        let (writer, channel) = match stream.into_sink() {
            Sink::Local(writer, channel) => (writer, channel),
            Sink::Remote(sink) => {
                // A sink of another session: what arrives here is passed on.
                let (local, readable) =
                    WritableStream::channel(self.session.limits().stream_window);
                self.pumps.push((readable, WritableStream::remote(sink)));
                match local.into_sink() {
                    Sink::Local(writer, channel) => (writer, channel),
                    Sink::Remote(_) => {
                        return Err(ErrorValue::new("Error", "The stream cannot be passed on."));
                    }
                }
            }
        };
        let id = self.add(ExportKind::Sink {
            channel: channel.clone(),
            _writer: writer,
            readable: None,
        })?;
        self.session.tell_of_cancel(id, &channel);
        Ok(id)
    }

    /// The message was sent.
    pub(crate) fn commit(mut self) {
        self.exports.clear();
        for (source, sink) in std::mem::take(&mut self.pumps) {
            // Without a runtime both ends are dropped, which ends the stream.
            let _ = task::spawn(pump(source, sink));
        }
        for (id, deferred) in std::mem::take(&mut self.promises) {
            self.session.resolve_when_done(id, deferred);
        }
    }
}

impl Drop for Exporter<'_> {
    fn drop(&mut self) {
        let mut dropped = Vec::new();
        {
            let mut tables = lock(&self.session.tables);
            for id in self.exports.drain(..) {
                let Some(export) = tables.exports.get_mut(&id) else {
                    continue;
                };
                export.refcount = export.refcount.saturating_sub(1);
                if export.refcount == 0 {
                    dropped.extend(tables.remove_export(id));
                }
            }
        }
        for id in self.pins.drain(..) {
            self.session.unpin(id);
        }
        drop(dropped);
    }
}
