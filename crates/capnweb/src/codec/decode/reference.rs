//! References: to what this side exported, and to what the peer offers.

use super::{Decoded, Decoder, Fault};
use crate::codes;
use crate::error::ErrorValue;
use crate::path::{Key, Path};
use crate::stub::Stub;
use crate::value::{Value, whole};

/// A call on something that this side exported.
pub(crate) struct Call {
    pub(crate) id: i64,
    pub(crate) path: Path,
    pub(crate) args: Vec<Value>,
}

impl Decoder<'_> {
    pub(crate) fn id(&mut self, start: usize) -> Decoded<i64> {
        match self.scan.peek() {
            Some(b'-' | b'0'..=b'9') => {
                let number = self.scan.number()?;
                whole(number).ok_or_else(|| self.unknown(start))
            }
            _ => Err(self.unknown(start)),
        }
    }

    pub(crate) fn path(&mut self, start: usize) -> Decoded<Path> {
        let mut path = Path::new();
        if !self.scan.take(b'[') {
            return Err(self.unknown(start));
        }
        if self.scan.take(b']') {
            return Ok(path);
        }
        loop {
            self.values = self
                .values
                .checked_sub(1)
                .ok_or_else(|| Fault::complex("The path has too many steps.".to_owned()))?;
            path.push(match self.scan.peek() {
                Some(b'"') => Key::Name(self.scan.string()?.into_owned()),
                Some(b'-' | b'0'..=b'9') => {
                    let number = self.scan.number()?;
                    match whole(number).and_then(|number| u64::try_from(number).ok()) {
                        Some(index) => Key::Index(index),
                        // Such an element never exists.
                        None => Key::Name(number.to_string()),
                    }
                }
                _ => return Err(self.unknown(start)),
            });
            if !self.scan.take(b',') {
                self.close(start)?;
                return Ok(path);
            }
        }
    }

    /// A call by `pipeline` as a whole message has it; `None`, with nothing
    /// read, for any other expression.
    pub(crate) fn pipeline_call(&mut self) -> Decoded<Option<Call>> {
        let start = self.scan.position();
        if !self.scan.take(b'[')
            || self.scan.peek() != Some(b'"')
            || self.scan.string()? != "pipeline"
        {
            self.scan.rewind(start);
            return Ok(None);
        }
        self.comma(start)?;
        let id = self.id(start)?;
        if !self.scan.take(b',') {
            self.scan.rewind(start);
            return Ok(None);
        }
        let path = self.path(start)?;
        if !self.scan.take(b',') {
            self.scan.rewind(start);
            return Ok(None);
        }
        if self.scan.peek() != Some(b'[') {
            return Err(self.unknown(start));
        }
        let args = self.list(1)?;
        self.close(start)?;
        Ok(Some(Call { id, path, args }))
    }

    /// `import` and `pipeline`: what this side exported, a part of it, or a call on it.
    pub(super) fn reference(
        &mut self,
        pipeline: bool,
        start: usize,
        depth: usize,
    ) -> Decoded<Value> {
        let session = self.session("a reference")?;
        let before = self.cost();
        let id = self.id(start)?;
        let mut path = None;
        let mut args = None;
        if self.scan.take(b',') {
            path = Some(self.path(start)?);
            if self.scan.take(b',') {
                if self.scan.peek() != Some(b'[') {
                    return Err(self.unknown(start));
                }
                args = Some(self.list(depth + 1)?);
            }
        }
        self.close(start)?;
        let size = self.cost().saturating_sub(before);
        let stub = session.refer(id, path, args, size)?;
        Ok(if pipeline {
            Value::Promise(stub)
        } else {
            Value::Stub(stub)
        })
    }

    /// `map` is refused for the call that uses it. What the captures export is
    /// let go of.
    pub(super) fn remap(&mut self, start: usize) -> Decoded<Value> {
        let session = self.session("a map")?;
        self.id(start)?;
        self.comma(start)?;
        self.path(start)?;
        self.comma(start)?;
        if !self.scan.take(b'[') {
            return Err(self.unknown(start));
        }
        let mut last = self.scan.take(b']');
        while !last {
            if !self.scan.take(b'[') {
                return Err(self.unknown(start));
            }
            let tag = self.text(start)?;
            self.comma(start)?;
            let id = self.id(start)?;
            self.close(start)?;
            match &*tag {
                "export" => drop(session.import_stub(id)?),
                "import" => {}
                _ => return Err(self.unknown(start)),
            }
            if !self.scan.take(b',') {
                self.close(start)?;
                last = true;
            }
        }
        self.comma(start)?;
        if self.scan.peek() != Some(b'[') {
            return Err(self.unknown(start));
        }
        self.scan.skip()?;
        self.close(start)?;
        Ok(Value::Promise(Stub::rejected(ErrorValue::coded(
            codes::UNSUPPORTED,
            "map() is not supported here; read the list, then call for each element.",
        ))))
    }

    pub(super) fn offered(&mut self, tag: &str, start: usize) -> Decoded<Value> {
        let session = self.session("a reference")?;
        let id = self.id(start)?;
        self.close(start)?;
        Ok(match tag {
            "export" => Value::Stub(session.import_stub(id)?),
            "promise" => Value::Promise(session.import_promise(id)?),
            "writable" => Value::Writable(session.import_writable(id)?),
            _ => Value::Readable(session.take_readable(id)?),
        })
    }
}
