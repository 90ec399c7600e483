//! References: to what this side exported, and to what the peer offers.

use super::{Decoded, Decoder, Fault, Scope};
use crate::dispatch::Action;
use crate::limits::Limits;
use crate::map::{Instructions, Mapping};
use crate::path::{Key, Path};
use crate::stub::Stub;
use crate::value::{Value, whole};

/// What an expression wants of what an id stands for.
pub(crate) enum Use {
    /// The thing itself.
    Whole,
    /// A part of it, or what a call on it comes to.
    Op(Path, Action),
}

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
        if matches!(self.scope, Scope::Bare) {
            self.session("a reference")?;
        }
        let before = self.cost();
        let id = self.id(start)?;
        let mut use_of = Use::Whole;
        if self.scan.take(b',') {
            let path = self.path(start)?;
            use_of = Use::Op(path, Action::Get);
            if self.scan.take(b',') {
                if self.scan.peek() != Some(b'[') {
                    return Err(self.unknown(start));
                }
                let args = self.list(depth + 1)?;
                if let Use::Op(path, _) = use_of {
                    use_of = Use::Op(path, Action::Call(args));
                }
            }
        }
        self.close(start)?;
        let size = self.cost().saturating_sub(before);
        let stub = self.refer(id, use_of, size)?;
        Ok(if pipeline {
            Value::Promise(stub)
        } else {
            Value::Stub(stub)
        })
    }

    fn refer(&self, id: i64, use_of: Use, size: usize) -> Decoded<Stub> {
        match self.scope {
            Scope::Map(frame) => frame.refer(id, use_of, size),
            Scope::Session(session) => session.refer(id, use_of, size),
            Scope::Bare => self.session("a reference").map(|_| Stub::undefined()),
        }
    }

    /// A function to apply to a value or to each element of a list. Its
    /// instructions are kept as text and read when they run.
    pub(super) fn remap(&mut self, start: usize, depth: usize) -> Decoded<Value> {
        if matches!(self.scope, Scope::Bare) {
            self.session("a map")?;
        }
        let before = self.cost();
        let id = self.id(start)?;
        self.comma(start)?;
        let path = self.path(start)?;
        self.comma(start)?;
        let captures = self.captures(start)?;
        self.comma(start)?;
        let instructions = self.instructions(start)?;
        self.close(start)?;
        let size = self.cost().saturating_sub(before);
        let mapping = match self.scope {
            Scope::Map(frame) => frame.nested(captures, instructions, depth)?,
            _ => Mapping::new(captures, instructions, depth, &self.limits()),
        };
        let stub = self.refer(id, Use::Op(path, Action::Map(Box::new(mapping))), size)?;
        Ok(Value::Promise(stub))
    }

    fn captures(&mut self, start: usize) -> Decoded<Vec<Stub>> {
        let mut captures = Vec::new();
        if !self.scan.take(b'[') {
            return Err(self.unknown(start));
        }
        if self.scan.take(b']') {
            return Ok(captures);
        }
        loop {
            self.spend()?;
            if !self.scan.take(b'[') {
                return Err(self.unknown(start));
            }
            let tag = self.text(start)?;
            self.comma(start)?;
            let id = self.id(start)?;
            self.close(start)?;
            captures.push(match &*tag {
                "export" => self.session("references")?.import_stub(id)?,
                "import" => self.refer(id, Use::Whole, 0)?,
                _ => return Err(self.unknown(start)),
            });
            if !self.scan.take(b',') {
                self.close(start)?;
                return Ok(captures);
            }
        }
    }

    /// The text of each instruction.
    fn instructions(&mut self, start: usize) -> Decoded<Instructions> {
        let from = self.scan.position();
        if !self.scan.take(b'[') {
            return Err(self.unknown(start));
        }
        let mut parts = Vec::new();
        if !self.scan.take(b']') {
            loop {
                self.spend()?;
                let at = self.scan.position();
                self.scan.skip()?;
                parts.push(at - from..self.scan.position() - from);
                if !self.scan.take(b',') {
                    self.close(start)?;
                    break;
                }
            }
        }
        Ok(Instructions::new(self.scan.since(from), parts))
    }

    fn spend(&mut self) -> Decoded<()> {
        let left = self.values.checked_sub(1);
        self.values =
            left.ok_or_else(|| Fault::complex("The message has too many parts.".to_owned()))?;
        Ok(())
    }

    fn limits(&self) -> Limits {
        match self.scope {
            Scope::Session(session) => session.limits(),
            _ => Limits::default(),
        }
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
