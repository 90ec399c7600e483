//! Reads expressions, straight from the text of the message.

mod fault;
mod fetch;
mod literal;
mod reference;

use std::sync::Arc;

pub(crate) use fault::Fault;
pub(crate) use reference::Use;

use super::scan::Scanner;
use crate::limits::{Dialect, Limits};
use crate::map::Frame;
use crate::object::{Object, ObjectBuilder};
use crate::path::is_reserved;
use crate::session::Shared;
use crate::value::Value;

/// About what a value takes in memory apart from its text.
const VALUE_COST: usize = 64;

type Decoded<T> = Result<T, Fault>;

/// What ids in an expression stand for.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// Nothing: references are refused.
    Bare,
    /// The tables of a session.
    Session(&'a Arc<Shared>),
    /// The variables and captures of a `map`.
    Map(&'a Frame<'a>),
}

/// Reads one message.
pub(crate) struct Decoder<'a> {
    scan: Scanner<'a>,
    scope: Scope<'a>,
    dialect: Dialect,
    depth: usize,
    values: usize,
    allowed: usize,
    digits: usize,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(text: &'a str, scope: Scope<'a>, limits: &Limits) -> Self {
        Self {
            scan: Scanner::new(text),
            scope,
            dialect: limits.dialect,
            depth: limits.depth,
            values: limits.values,
            allowed: limits.values,
            digits: limits.bigint_digits,
        }
    }

    pub(crate) fn scan(&mut self) -> &mut Scanner<'a> {
        &mut self.scan
    }

    /// About what everything read so far takes in memory.
    pub(crate) fn cost(&self) -> usize {
        self.scan.position() + (self.allowed - self.values).saturating_mul(VALUE_COST)
    }

    /// Nothing may follow the message.
    pub(crate) fn finish(&mut self) -> Decoded<()> {
        if self.scan.at_end() {
            Ok(())
        } else {
            Ok(self.scan.malformed()?)
        }
    }

    fn session(&self, what: &str) -> Decoded<&'a Arc<Shared>> {
        match self.scope {
            Scope::Session(session) => Ok(session),
            Scope::Bare => Err(Fault::fatal(format!(
                "Cannot deserialize {what} without an RPC session."
            ))),
            Scope::Map(_) => Err(Fault::fatal(format!(
                "A mapper function cannot use {what} of its own."
            ))),
        }
    }

    pub(crate) fn value(&mut self, depth: usize) -> Decoded<Value> {
        if depth >= self.depth {
            return Err(Fault::complex("The value is nested too deeply.".to_owned()));
        }
        self.values = self
            .values
            .checked_sub(1)
            .ok_or_else(|| Fault::complex("The message has too many parts.".to_owned()))?;
        match self.scan.peek() {
            Some(b'"') => Ok(Value::String(self.scan.string()?.into_owned())),
            Some(b'[') => self.bracket(depth),
            Some(b'{') => Ok(Value::Object(self.object(depth, |_| false)?)),
            Some(b'-' | b'0'..=b'9') => Ok(Value::Number(self.scan.number()?)),
            Some(b't') => self
                .scan
                .word("true")
                .map(|()| Value::Bool(true))
                .map_err(Fault::from),
            Some(b'f') => self
                .scan
                .word("false")
                .map(|()| Value::Bool(false))
                .map_err(Fault::from),
            Some(b'n') => self
                .scan
                .word("null")
                .map(|()| Value::Null)
                .map_err(Fault::from),
            _ => Ok(self.scan.malformed()?),
        }
    }

    /// The fields of an object, without those that every object has and those to skip.
    fn object(&mut self, depth: usize, skip: impl Fn(&str) -> bool) -> Decoded<Object> {
        let mut object = ObjectBuilder::default();
        self.scan.expect(b'{')?;
        if self.scan.take(b'}') {
            return Ok(object.finish());
        }
        loop {
            if self.scan.peek() != Some(b'"') {
                return Ok(self.scan.malformed()?);
            }
            let key = self.scan.string()?;
            self.scan.expect(b':')?;
            if skip(&key) {
                self.scan.skip()?;
            } else {
                let value = self.value(depth + 1)?;
                if !is_reserved(&key) {
                    object.put(key.into_owned(), value);
                }
            }
            if !self.scan.take(b',') {
                self.scan.expect(b'}')?;
                return Ok(object.finish());
            }
        }
    }

    fn bracket(&mut self, depth: usize) -> Decoded<Value> {
        let start = self.scan.position();
        self.scan.expect(b'[')?;
        match self.scan.peek() {
            Some(b'[') => {
                let items = self.list(depth + 1)?;
                self.close(start)?;
                Ok(Value::Array(items))
            }
            Some(b'"') => {
                let tag = self.scan.string()?;
                self.special(&tag, start, depth)
            }
            _ => Err(self.unknown(start)),
        }
    }

    /// A list of expressions that is not escaped.
    pub(crate) fn list(&mut self, depth: usize) -> Decoded<Vec<Value>> {
        let mut items = Vec::new();
        self.scan.expect(b'[')?;
        if self.scan.take(b']') {
            return Ok(items);
        }
        loop {
            items.push(self.value(depth)?);
            if !self.scan.take(b',') {
                self.scan.expect(b']')?;
                return Ok(items);
            }
        }
    }

    fn unknown(&mut self, start: usize) -> Fault {
        let shown: String = self.scan.since(start).chars().take(64).collect();
        Fault::fatal(format!("unknown special value: {shown}"))
    }

    fn close(&mut self, start: usize) -> Decoded<()> {
        if self.scan.take(b']') {
            Ok(())
        } else {
            Err(self.unknown(start))
        }
    }

    fn comma(&mut self, start: usize) -> Decoded<()> {
        if self.scan.take(b',') {
            Ok(())
        } else {
            Err(self.unknown(start))
        }
    }

    fn text(&mut self, start: usize) -> Decoded<std::borrow::Cow<'a, str>> {
        if self.scan.peek() == Some(b'"') {
            Ok(self.scan.string()?)
        } else {
            Err(self.unknown(start))
        }
    }

    fn special(&mut self, tag: &str, start: usize, depth: usize) -> Decoded<Value> {
        let constant = match tag {
            "undefined" => Some(Value::Undefined),
            "inf" => Some(Value::Number(f64::INFINITY)),
            "-inf" => Some(Value::Number(f64::NEG_INFINITY)),
            "nan" => Some(Value::Number(f64::NAN)),
            _ => None,
        };
        if let Some(constant) = constant {
            self.close(start)?;
            return Ok(constant);
        }
        self.comma(start)?;
        match tag {
            "bytes" => self.bytes(start),
            "bigint" => self.bigint(start),
            "date" => self.date(start),
            "error" => self.error(start, depth),
            "url" => {
                let url = self.text(start)?.into_owned();
                self.close(start)?;
                Ok(Value::Url(url))
            }
            "headers" => {
                let headers = self.pairs(start)?;
                self.close(start)?;
                Ok(Value::Headers(headers))
            }
            "request" => self.request(start, depth),
            "response" => self.response(start, depth),
            "blob" => self.blob(start, depth),
            "import" | "pipeline" => self.reference(tag == "pipeline", start, depth),
            "remap" => self.remap(start, depth),
            "export" | "promise" | "writable" | "readable" => self.offered(tag, start),
            _ => Err(self.unknown(start)),
        }
    }
}
