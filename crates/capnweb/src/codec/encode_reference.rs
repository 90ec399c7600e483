//! References, promises and streams, as they are written.

use super::encode::{Encoded, Encoder, Place};
use crate::error::ErrorValue;
use crate::map::variable;
use crate::outcome::Outcome;
use crate::session::Exporter;
use crate::stub::{Inner, Stub};
use crate::value::Value;

impl<'a> Encoder<'a> {
    fn exporter(&mut self, what: &str) -> Result<&mut Exporter<'a>, ErrorValue> {
        match &mut self.place {
            Place::Session(exporter) => Ok(exporter),
            Place::Bare => Err(ErrorValue::type_error(format!(
                "Cannot serialize {what} without an RPC session."
            ))),
            Place::Map(_) => Err(ErrorValue::type_error(format!(
                "Cannot send {what} inside a mapper function."
            ))),
        }
    }

    pub(super) fn tagged(&mut self, tag: &str, id: i64) -> Encoded {
        self.raw("[\"");
        self.raw(tag);
        self.raw("\",");
        self.integer(id);
        self.raw("]");
        self.room(0)
    }

    pub(super) fn stub(&mut self, stub: &Stub, depth: usize) -> Encoded {
        if let Place::Map(frames) = &mut self.place {
            let id = frames.place_of(stub)?;
            return self.tagged("import", id);
        }
        let exporter = self.exporter("a reference")?;
        if let Some(id) = exporter.import_of(stub) {
            return self.tagged("import", id);
        }
        if let Inner::Deferred(deferred) = stub.inner()
            && let Some(Outcome::Value(view)) = deferred.origin().outcome()
            && let Some(Some(inner)) = view.try_with(|value| value.as_stub().cloned())
        {
            return self.value(&mut Value::Stub(inner), depth + 1);
        }
        if let Inner::Variable(_) = stub.inner() {
            return Err(variable());
        }
        let id = self.exporter("a reference")?.export(stub)?;
        self.tagged("export", id)
    }

    /// A reference that a `map` captures.
    pub(crate) fn capture(&mut self, stub: &Stub) -> Encoded {
        self.stub(stub, 0)
    }

    pub(super) fn promise(&mut self, stub: &Stub, depth: usize) -> Encoded {
        match stub.inner() {
            Inner::Target(_) | Inner::Import(_) => return self.stub(stub, depth),
            Inner::Deferred(deferred) => {
                if let Some(Outcome::Value(view)) = deferred.origin().outcome()
                    && let Some(encoded) = view.try_with(|value| self.value(value, depth + 1))
                {
                    return encoded;
                }
            }
            Inner::Rejected(_) | Inner::Variable(_) => {}
        }
        if let Place::Map(frames) = &mut self.place {
            let id = frames.place_of(stub)?;
            return self.tagged("pipeline", id);
        }
        if let Inner::Variable(_) = stub.inner() {
            return Err(variable());
        }
        let exporter = self.exporter("a promise")?;
        if let Some(id) = exporter.import_of(stub) {
            return self.tagged("pipeline", id);
        }
        let id = exporter.export_promise(stub)?;
        self.tagged("promise", id)
    }

    pub(super) fn stream(&mut self, value: Value) -> Encoded {
        self.room(32)?;
        match value {
            Value::Readable(stream) => {
                let id = self.exporter("a stream")?.pipe(stream)?;
                self.tagged("readable", id)
            }
            Value::Writable(stream) => {
                let id = self.exporter("a stream")?.writable(stream)?;
                self.tagged("writable", id)
            }
            Value::Blob(blob) => {
                let id = self.exporter("a blob")?.pipe(blob.content)?;
                self.raw("[\"blob\",");
                self.string(&blob.media_type)?;
                self.raw(",");
                self.tagged("readable", id)?;
                self.raw("]");
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
