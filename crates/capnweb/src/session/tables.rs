//! Who refers to what.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::connection::CloseReason;
use crate::deferred::Deferred;
use crate::error::ErrorValue;
use crate::stream::flow::{Flow, Sent};
use crate::stream::{Channel, ReadableStream, StreamWriter};
use crate::stub::{Inner, Stub};

/// What the peer may refer to.
pub(super) struct Export {
    pub(super) refcount: u64,
    pub(super) kind: ExportKind,
    pub(super) resolver: Option<AbortHandle>,
    /// Released by this side with its resolution.
    pub(super) auto_release: bool,
}

pub(super) enum ExportKind {
    /// An object or function.
    Stub(Stub),
    /// The result of a call.
    Result(Arc<Deferred>),
    /// The end of a stream that the peer writes. Dropping the writer ends it.
    Sink {
        channel: Arc<Channel>,
        _writer: StreamWriter,
        /// The other end, until the peer says where it belongs.
        readable: Option<ReadableStream>,
    },
}

impl Export {
    pub(super) fn new(kind: ExportKind) -> Self {
        Self {
            refcount: 1,
            kind,
            resolver: None,
            auto_release: false,
        }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        if let Some(resolver) = &self.resolver {
            resolver.abort();
        }
    }
}

/// What this side refers to.
pub(super) struct Import {
    /// How often the peer has sent it.
    pub(super) refcount: u64,
    /// Messages being written that refer to it; it is not released meanwhile.
    pub(super) pins: usize,
    pub(super) resolved: bool,
    pub(super) pulled: bool,
    pub(super) kind: ImportKind,
}

pub(super) enum ImportKind {
    Stub(Weak<Inner>),
    /// A sink, whose stream fails if the peer rejects it.
    Sink(Weak<Inner>, Arc<Flow>),
    Result(Weak<Deferred>),
    /// A chunk of a stream.
    Write(Arc<Flow>, Sent),
    /// The end of a stream.
    Finish(oneshot::Sender<Result<(), Arc<ErrorValue>>>),
}

impl Import {
    pub(super) fn new(kind: ImportKind) -> Self {
        Self {
            refcount: 1,
            pins: 0,
            resolved: false,
            pulled: false,
            kind,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        match &self.kind {
            ImportKind::Stub(stub) | ImportKind::Sink(stub, _) => stub.strong_count() > 0,
            ImportKind::Result(deferred) => deferred.strong_count() > 0,
            ImportKind::Write(..) | ImportKind::Finish(_) => true,
        }
    }
}

pub(super) struct Tables {
    pub(super) exports: HashMap<i64, Export>,
    /// Exported objects by identity, so that one has one id.
    pub(super) exported: HashMap<usize, i64>,
    pub(super) imports: HashMap<i64, Import>,
    /// The id of the peer's next push.
    next_pushed: i64,
    /// The id of our next push.
    next_import: i64,
    /// The id of our next export.
    next_export: i64,
    pub(super) closed: Option<CloseReason>,
    /// Nothing that is sent will be answered.
    pub(super) mute: bool,
}

impl Tables {
    pub(super) fn new(main: Stub) -> Self {
        Self {
            exports: HashMap::from([(0, Export::new(ExportKind::Stub(main)))]),
            exported: HashMap::new(),
            imports: HashMap::new(),
            next_pushed: 1,
            next_import: 1,
            next_export: -1,
            closed: None,
            mute: false,
        }
    }

    /// The place of a message that takes one, whatever becomes of it.
    pub(super) fn pushed_id(&mut self) -> i64 {
        let id = self.next_pushed;
        self.next_pushed += 1;
        id
    }

    pub(super) fn import_id(&mut self) -> i64 {
        let id = self.next_import;
        self.next_import += 1;
        id
    }

    pub(super) fn export_id(&mut self) -> i64 {
        let id = self.next_export;
        self.next_export -= 1;
        id
    }

    /// Takes an export off the table.
    pub(super) fn remove_export(&mut self, id: i64) -> Option<Export> {
        let export = self.exports.remove(&id)?;
        if let ExportKind::Stub(stub) = &export.kind
            && self.exported.get(&stub.identity()) == Some(&id)
        {
            self.exported.remove(&stub.identity());
        }
        Some(export)
    }
}
