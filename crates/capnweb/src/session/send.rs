//! Messages to the peer.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use super::connection::CloseReason;
use super::link::ImportLink;
use super::shared::{Shared, not_reading};
use super::tables::{Import, ImportKind};
use crate::codec::{Encoder, Place};
use crate::codes;
use crate::deferred::Deferred;
use crate::dispatch::{Action, Op};
use crate::error::ErrorValue;
use crate::lock::lock;
use crate::outcome::Outcome;
use crate::stream::flow::Flow;
use crate::value::Value;

pub(super) fn imports_full() -> ErrorValue {
    ErrorValue::coded(
        codes::TABLE_FULL,
        "This session refers to too many objects and results of the peer; drop some first.",
    )
}

impl Shared {
    /// Keeps an import from being released while a message that refers to it
    /// is written. False if it is not at the peer any more.
    pub(super) fn pin(&self, id: i64) -> bool {
        let mut tables = lock(&self.tables);
        if id == 0 {
            return tables.closed.is_none();
        }
        match tables.imports.get_mut(&id) {
            Some(import) if !import.resolved => {
                import.pins += 1;
                true
            }
            _ => false,
        }
    }

    pub(super) fn unpin(&self, id: i64) {
        let mut tables = lock(&self.tables);
        let Some(import) = tables.imports.get_mut(&id) else {
            return;
        };
        import.pins = import.pins.saturating_sub(1);
        if import.pins == 0 && import.resolved {
            let refcount = import.refcount;
            tables.imports.remove(&id);
            self.outbox.push(release_message(id, refcount));
        }
    }

    /// Sends a call on an import, or gives it back if that is not at the peer any more.
    pub(super) fn send_push(
        self: &Arc<Self>,
        target: i64,
        mut op: Op,
    ) -> Result<Arc<Deferred>, Op> {
        if !self.pin(target) {
            return Err(op);
        }
        let limits = self.limits();
        let sent = if self.outbox.bytes() > limits.queue_max_bytes {
            Err(not_reading())
        } else {
            let mut encoder = Encoder::new(Place::of(self), &limits);
            let tag = match op.action {
                Action::Map(_) => "remap",
                _ => "pipeline",
            };
            encoder.raw("[\"push\",[\"");
            encoder.raw(tag);
            encoder.raw("\",");
            encoder.integer(target);
            encoder.raw(",");
            let encoded = encoder.path(&op.path).and_then(|()| match &mut op.action {
                Action::Get => Ok(()),
                Action::Call(args) => {
                    encoder.raw(",");
                    encoder.list(args, 1)
                }
                Action::Map(mapping) => mapping.encode(&mut encoder),
            });
            encoded.and_then(|()| {
                encoder.raw("]]");
                let text = encoder.take_text();
                let deferred = self.enqueue_push(text, limits.imports)?;
                encoder.commit();
                Ok(deferred)
            })
        };
        self.unpin(target);
        Ok(sent.unwrap_or_else(Deferred::rejected))
    }

    fn enqueue_push(
        self: &Arc<Self>,
        text: String,
        most: usize,
    ) -> Result<Arc<Deferred>, ErrorValue> {
        let lifeline = self.lifeline();
        let mut tables = lock(&self.tables);
        if let Some(reason) = &tables.closed {
            return Err(reason.error(false));
        }
        if tables.mute {
            return Err(CloseReason::BatchEnded.error(false));
        }
        if tables.imports.len() >= most {
            return Err(imports_full());
        }
        let id = tables.import_id();
        let deferred = Deferred::imported(ImportLink::new(self.clone(), id, lifeline));
        let import = Import::new(ImportKind::Result(Arc::downgrade(&deferred)));
        tables.imports.insert(id, import);
        self.outbox.push(text);
        Ok(deferred)
    }

    pub(super) fn send_pull(&self, id: i64) {
        let mut tables = lock(&self.tables);
        if let Some(import) = tables.imports.get_mut(&id)
            && !import.pulled
            && !import.resolved
        {
            import.pulled = true;
            self.outbox.push(format!("[\"pull\",{id}]"));
        }
    }

    /// Releases imports, unless the peer has sent them again meanwhile.
    pub(super) fn release_imports(&self, ids: &[i64]) {
        let mut tables = lock(&self.tables);
        for id in ids {
            let Some(import) = tables.imports.get_mut(id) else {
                continue;
            };
            if import.is_held() {
                continue;
            }
            if import.pins > 0 {
                // Whoever unpins it last releases it.
                import.resolved = true;
                continue;
            }
            let refcount = import.refcount;
            tables.imports.remove(id);
            self.outbox.push(release_message(*id, refcount));
        }
    }

    /// Sends what a pulled export came to, once there is room.
    pub(super) async fn send_resolution(self: &Arc<Self>, id: i64, outcome: Outcome) {
        let limits = self.limits();
        self.outbox.room(limits.queue_bytes).await;
        let rejected = match outcome {
            Outcome::Value(view) => {
                let mut encoder = Encoder::new(Place::of(self), &limits);
                encoder.raw("[\"resolve\",");
                encoder.integer(id);
                encoder.raw(",");
                match view.with(|value| encoder.value(value, 0)) {
                    Ok(()) => {
                        encoder.raw("]");
                        let text = encoder.take_text();
                        self.outbox.push(text);
                        encoder.commit();
                        None
                    }
                    Err(error) => Some(Arc::new(error)),
                }
            }
            Outcome::Rejected(error) => Some(error),
        };
        if let Some(error) = rejected {
            self.outbox.push(self.reject_message(id, &error));
        }
        self.outbox.pass_on(limits.queue_bytes);
        let released = {
            let mut tables = lock(&self.tables);
            match tables.exports.get(&id) {
                Some(export) if export.auto_release => tables.remove_export(id),
                _ => None,
            }
        };
        drop(released);
    }

    /// References in an error are not sent.
    pub(super) fn reject_message(&self, id: i64, error: &ErrorValue) -> String {
        let limits = self.limits();
        let mut encoder = Encoder::new(Place::Bare, &limits);
        let start = format!("[\"reject\",{id},");
        encoder.raw(&start);
        if encoder.value(&mut Value::from(error.clone()), 0).is_ok() {
            encoder.raw("]");
            return encoder.into_text();
        }
        let mut bare = ErrorValue::new(
            error.name.as_str(),
            error.message.chars().take(4096).collect::<String>(),
        );
        if let Some(code) = error.code() {
            bare.props.insert("code", code);
        }
        let mut encoder = Encoder::new(Place::Bare, &limits);
        encoder.raw(&start);
        // Short text and a code always fit.
        let _ = encoder.value(&mut Value::from(bare), 0);
        encoder.raw("]");
        encoder.into_text()
    }

    /// Sends a chunk of a stream.
    pub(crate) fn send_write(
        self: &Arc<Self>,
        target: i64,
        mut chunk: Value,
        flow: &Arc<Flow>,
    ) -> Result<(), Arc<ErrorValue>> {
        let limits = self.limits();
        let mut encoder = Encoder::new(Place::of(self), &limits);
        encoder.raw("[\"stream\",[\"pipeline\",");
        encoder.integer(target);
        encoder.raw(",[\"write\"],[");
        encoder.value(&mut chunk, 1)?;
        encoder.raw("]]]");
        let text = encoder.take_text();
        let sent = flow.sent(text.len(), Instant::now());
        self.enqueue_stream(text, ImportKind::Write(flow.clone(), sent))?;
        encoder.commit();
        self.outbox.pass_on(limits.queue_bytes);
        Ok(())
    }

    /// Sends the end of a stream; resolves when the peer has read everything.
    pub(crate) async fn send_finish(
        self: &Arc<Self>,
        target: i64,
        abort: Option<ErrorValue>,
    ) -> Result<(), Arc<ErrorValue>> {
        let limits = self.limits();
        let (done, finished) = oneshot::channel();
        let text = {
            let mut encoder = Encoder::new(Place::Bare, &limits);
            encoder.raw("[\"stream\",[\"pipeline\",");
            encoder.integer(target);
            match abort {
                None => encoder.raw(",[\"close\"],[]]]"),
                Some(error) => {
                    encoder.raw(",[\"abort\"],[");
                    encoder.value(&mut Value::from(error), 1)?;
                    encoder.raw("]]]");
                }
            }
            encoder.into_text()
        };
        self.enqueue_stream(text, ImportKind::Finish(done))?;
        finished.await.unwrap_or(Ok(()))
    }

    fn enqueue_stream(&self, text: String, kind: ImportKind) -> Result<(), Arc<ErrorValue>> {
        let mut tables = lock(&self.tables);
        if let Some(reason) = &tables.closed {
            return Err(Arc::new(reason.error(false)));
        }
        if tables.mute {
            return Err(Arc::new(CloseReason::BatchEnded.error(false)));
        }
        let id = tables.import_id();
        tables.imports.insert(id, Import::new(kind));
        self.outbox.push(text);
        Ok(())
    }
}

pub(super) fn release_message(id: i64, refcount: u64) -> String {
    format!("[\"release\",{id},{refcount}]")
}
