//! What received expressions refer to.

use std::sync::Arc;

use super::admission::Admission;
use super::collect::Asked;
use super::connection::CloseReason;
use super::link::ImportLink;
use super::shared::Shared;
use super::tables::{Export, ExportKind, Import, ImportKind};
use crate::budget::Kind;
use crate::codec::{Fault, Use};
use crate::codes;
use crate::deferred::Deferred;
use crate::dispatch::{self, Action, Op};
use crate::error::ErrorValue;
use crate::lock::lock;
use crate::outcome::Outcome;
use crate::path::{Key, Path, display_path};
use crate::stream::flow::Flow;
use crate::stream::{Ack, Channel, Item, ReadableStream, RemoteSink, StreamWriter, WritableStream};
use crate::stub::{Inner, Stub};
use crate::task;
use crate::value::Value;

/// What an export id stands for.
pub(super) enum Referent {
    Stub(Stub),
    Result(Arc<Deferred>),
    Sink(Arc<Channel>),
}

impl Shared {
    pub(super) fn referent(&self, id: i64) -> Result<Referent, Fault> {
        let tables = lock(&self.tables);
        match tables.exports.get(&id).map(|export| &export.kind) {
            Some(ExportKind::Stub(stub)) => Ok(Referent::Stub(stub.clone())),
            Some(ExportKind::Result(deferred)) => Ok(Referent::Result(deferred.clone())),
            Some(ExportKind::Sink { channel, .. }) => Ok(Referent::Sink(channel.clone())),
            None => Err(Fault::fatal(format!(
                "no such entry on exports table: {id}"
            ))),
        }
    }

    /// An export, a part of it, or a call on it that starts now or is queued.
    pub(crate) fn refer(
        self: &Arc<Self>,
        id: i64,
        use_of: Use,
        size: usize,
    ) -> Result<Stub, Fault> {
        let referent = self.referent(id)?;
        let Use::Op(path, action) = use_of else {
            return Ok(match referent {
                Referent::Stub(stub) => stub,
                Referent::Result(deferred) => Stub::deferred(deferred),
                Referent::Sink(_) => {
                    Stub::rejected(ErrorValue::new("Error", "A stream cannot be sent back."))
                }
            });
        };
        Ok(Stub::deferred(self.refer_op(referent, path, action, size)))
    }

    pub(super) fn refer_op(
        self: &Arc<Self>,
        referent: Referent,
        path: Path,
        mut action: Action,
        size: usize,
    ) -> Arc<Deferred> {
        if let Referent::Sink(channel) = referent {
            let result = Deferred::waiting();
            let answered = result.clone();
            let ack = Ack::new(move |result| {
                answered.complete(match result {
                    Ok(()) => Ok(Value::Undefined).into(),
                    Err(error) => Outcome::Rejected(error),
                });
            });
            self.on_sink(&channel, &path, action, size, ack);
            return result;
        }
        let admission = match Admission::new(self, size) {
            Ok(admission) => admission,
            Err(error) => return Deferred::rejected(error),
        };
        if let Action::Map(mapping) = &mut action {
            mapping.admit(admission.clone());
        }
        let op = Op {
            path,
            action,
            admission: Some(admission),
        };
        match referent {
            Referent::Stub(stub) => dispatch::on_stub(&stub, op),
            Referent::Result(deferred) => dispatch::on_deferred(&deferred, op),
            Referent::Sink(_) => {
                Deferred::rejected(ErrorValue::new("Error", "A stream cannot be called."))
            }
        }
    }

    /// A call on the written end of a stream.
    pub(super) fn on_sink(
        &self,
        channel: &Arc<Channel>,
        path: &[Key],
        action: Action,
        size: usize,
        ack: Ack,
    ) {
        let (method, args) = match (path, action) {
            ([Key::Name(name)], Action::Call(args)) => (name.as_str(), args),
            _ => ("", Vec::new()),
        };
        let first = args.into_iter().next().unwrap_or_default();
        match method {
            "write" => {
                let limit = self.limits().stream_bytes;
                let charge = self.charge(&self.stream_bytes, Kind::Bytes, size, limit);
                let Some(charge) = charge else {
                    let error = Arc::new(ErrorValue::coded(
                        codes::STREAM_OVERFLOW,
                        format!(
                            "More than {limit} bytes of streams are unread; wait for acknowledgements."
                        ),
                    ));
                    channel.fail(error.clone());
                    return ack.answer(Err(error));
                };
                channel.push(Item {
                    chunk: first,
                    bytes: size,
                    ack: Some(ack),
                    _charge: Some(charge),
                });
            }
            "close" => channel.close(Some(ack)),
            "abort" => {
                let reason = match first {
                    Value::Error(error) => *error,
                    Value::String(text) => ErrorValue::new("Error", text),
                    _ => ErrorValue::new("Error", "The stream was aborted."),
                };
                channel.fail(Arc::new(reason));
                ack.answer(Ok(()));
            }
            _ => ack.answer(Err(Arc::new(ErrorValue::type_error(format!(
                "'{}' is not a method of a WritableStream.",
                display_path(path)
            ))))),
        }
    }

    /// A stream that the peer will write: the next pushed id.
    pub(super) fn open_pipe(self: &Arc<Self>) -> Result<(), Fault> {
        let limits = self.limits();
        let channel = Channel::new(limits.stream_bytes);
        let id = lock(&self.tables).pushed_id();
        self.tell_of_cancel(id, &channel);
        let writer = StreamWriter::new(channel.clone());
        let session = self.lifeline().map(|lifeline| lifeline as Arc<_>);
        let readable = ReadableStream::new(channel.clone(), session);
        let kind = ExportKind::Sink {
            channel,
            _writer: writer,
            readable: Some(readable),
        };
        self.add_pushed(id, Export::new(kind))
    }

    /// Rejects a sink when its reader goes away: the wire has no cancel, but a
    /// peer that learns that its sink is no good stops its source. Otherwise it
    /// would find out only at its next write, which may never come.
    pub(super) fn tell_of_cancel(self: &Arc<Self>, id: i64, channel: &Arc<Channel>) {
        let session = Arc::downgrade(self);
        channel.on_cancel(move |reason| {
            let Some(session) = session.upgrade() else {
                return;
            };
            let known = lock(&session.tables).exports.contains_key(&id);
            if known {
                session.post(session.reject_message(id, reason));
            }
        });
    }

    /// Puts an export at its pushed id.
    pub(super) fn add_pushed(&self, id: i64, export: Export) -> Result<(), Fault> {
        let limit = self.limits().exports;
        let mut tables = lock(&self.tables);
        if tables.closed.is_some() {
            drop(tables);
            drop(export);
            return Ok(());
        }
        if tables.exports.len() >= limit {
            drop(tables);
            drop(export);
            return Err(Fault::Fatal(Box::new(ErrorValue::coded(
                codes::TABLE_FULL,
                format!("More than {limit} objects and results are not released."),
            ))));
        }
        tables.exports.insert(id, export);
        Ok(())
    }

    /// An object of the peer.
    pub(crate) fn import_stub(self: &Arc<Self>, id: i64) -> Result<Stub, Fault> {
        let lifeline = self.lifeline();
        let limit = self.limits().imports;
        let mut tables = lock(&self.tables);
        if let Some(reason) = &tables.closed {
            return Ok(Stub::rejected(reason.error(false)));
        }
        if id >= 0 {
            return Err(Fault::fatal(format!(
                "An export has the id {id}, which is not negative."
            )));
        }
        if let Some(import) = tables.imports.get_mut(&id) {
            let (ImportKind::Stub(weak) | ImportKind::Sink(weak, _)) = &mut import.kind else {
                return Err(Fault::fatal(format!(
                    "The export {id} was a promise before."
                )));
            };
            import.refcount += 1;
            if let Some(inner) = weak.upgrade() {
                drop(tables);
                return Ok(Stub::from_arc(inner));
            }
            let inner = Arc::new(Inner::Import(ImportLink::new(self.clone(), id, lifeline)));
            *weak = Arc::downgrade(&inner);
            return Ok(Stub::from_arc(inner));
        }
        if tables.imports.len() >= limit {
            return Err(Fault::Fatal(Box::new(super::send::imports_full())));
        }
        let inner = Arc::new(Inner::Import(ImportLink::new(self.clone(), id, lifeline)));
        let import = Import::new(ImportKind::Stub(Arc::downgrade(&inner)));
        tables.imports.insert(id, import);
        Ok(Stub::from_arc(inner))
    }

    /// A result of the peer that it will send unasked.
    pub(crate) fn import_promise(self: &Arc<Self>, id: i64) -> Result<Stub, Fault> {
        let lifeline = self.lifeline();
        let limit = self.limits().imports;
        let mut tables = lock(&self.tables);
        if let Some(reason) = &tables.closed {
            return Ok(Stub::rejected(reason.error(false)));
        }
        if id >= 0 || tables.imports.contains_key(&id) {
            return Err(Fault::fatal(format!(
                "The promise id {id} is not a new one."
            )));
        }
        if tables.imports.len() >= limit {
            return Err(Fault::Fatal(Box::new(super::send::imports_full())));
        }
        let deferred = Deferred::imported(ImportLink::new(self.clone(), id, lifeline));
        let mut import = Import::new(ImportKind::Result(Arc::downgrade(&deferred)));
        import.pulled = true;
        tables.imports.insert(id, import);
        Ok(Stub::deferred(deferred))
    }

    /// A sink of the peer.
    pub(crate) fn import_writable(self: &Arc<Self>, id: i64) -> Result<WritableStream, Fault> {
        let stub = self.import_stub(id)?;
        let flow = Flow::new(self.limits().stream_window);
        let mut tables = lock(&self.tables);
        match tables.imports.get_mut(&id) {
            Some(import) => {
                if let ImportKind::Stub(weak) = &import.kind {
                    import.kind = ImportKind::Sink(weak.clone(), flow.clone());
                }
            }
            None => flow.fail(Arc::new(CloseReason::Dropped.error(false))),
        }
        drop(tables);
        let sink = RemoteSink::new(stub, self.clone(), id, flow);
        Ok(WritableStream::remote(sink))
    }

    /// The read end of a pipe that the peer opened before.
    pub(crate) fn take_readable(&self, id: i64) -> Result<ReadableStream, Fault> {
        let mut tables = lock(&self.tables);
        match tables.exports.get_mut(&id).map(|export| &mut export.kind) {
            Some(ExportKind::Sink { readable, .. }) => readable.take(),
            _ => None,
        }
        .ok_or_else(|| {
            Fault::fatal(format!(
                "Export {id} is not a pipe or its readable end was already consumed."
            ))
        })
    }

    /// Waits until the peer has read enough of what is queued.
    pub(crate) async fn room(&self) {
        self.outbox.room(self.limits().queue_bytes).await;
    }

    /// Sends the outcome of an export when it is there.
    pub(super) fn resolve_when_done(self: &Arc<Self>, id: i64, deferred: Arc<Deferred>) {
        let session = self.clone();
        let asked = Asked::new(self);
        let Some(task) = task::spawn(async move {
            let _asked = asked;
            let outcome = deferred.wait().await;
            session.send_resolution(id, outcome).await;
        }) else {
            return self.post(self.reject_message(id, &task::no_runtime()));
        };
        let mut tables = lock(&self.tables);
        match tables.exports.get_mut(&id) {
            Some(export) => export.resolver = Some(task),
            None => task.abort(),
        }
    }
}
