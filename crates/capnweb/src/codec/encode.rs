//! Writes values as expressions, straight into the text of the message.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::scan::first_special;
use crate::codes;
use crate::error::ErrorValue;
use crate::limits::{Dialect, Limits};
use crate::map::Frames;
use crate::object::Object;
use crate::path::{Key, is_reserved};
use crate::session::{Exporter, Shared};
use crate::value::{Value, whole};

/// What references in an expression become.
pub(crate) enum Place<'a> {
    /// Nothing: they are refused.
    Bare,
    /// Places in the tables of a session.
    Session(Exporter<'a>),
    /// Variables and captures of a `map`.
    Map(&'a mut Frames),
}

impl<'a> Place<'a> {
    pub(crate) fn of(session: &'a Arc<Shared>) -> Self {
        Self::Session(Exporter::new(session))
    }
}

/// Writes one message.
///
/// References and streams in it get their place in the session's tables as
/// they are met. The caller then either sends the text and calls
/// [`commit`](Self::commit), or drops the encoder, which takes them back.
pub(crate) struct Encoder<'a> {
    out: String,
    pub(super) place: Place<'a>,
    dialect: Dialect,
    depth: usize,
    most: usize,
}

pub(super) type Encoded = Result<(), ErrorValue>;

impl<'a> Encoder<'a> {
    pub(crate) fn new(place: Place<'a>, limits: &Limits) -> Self {
        Self {
            out: String::new(),
            place,
            dialect: limits.dialect,
            depth: limits.depth,
            most: limits.send_bytes,
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.out
    }

    /// Takes the text; the places in the tables are kept until `commit`.
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// The message was sent: what it refers to stays.
    pub(crate) fn commit(self) {
        if let Place::Session(exporter) = self.place {
            exporter.commit();
        }
    }

    pub(crate) fn raw(&mut self, text: &str) {
        self.out.push_str(text);
    }

    pub(crate) fn integer(&mut self, number: i64) {
        self.out.push_str(&number.to_string());
    }

    pub(crate) fn room(&self, more: usize) -> Encoded {
        if self.out.len().saturating_add(more) > self.most {
            return Err(ErrorValue::coded(
                codes::MESSAGE_TOO_LARGE,
                format!(
                    "The message is larger than the {} bytes that may be sent; use a stream instead.",
                    self.most
                ),
            ));
        }
        Ok(())
    }

    pub(crate) fn value(&mut self, value: &mut Value, depth: usize) -> Encoded {
        if depth >= self.depth {
            return Err(ErrorValue::coded(
                codes::VALUE_TOO_COMPLEX,
                format!("The value is nested deeper than {} levels.", self.depth),
            ));
        }
        match value {
            Value::Array(items) => self.array(items, depth),
            Value::Object(object) => self.object(object, depth),
            Value::Error(error) => self.error(error, depth),
            Value::Request(request) => self.request(request, depth),
            Value::Response(response) => self.response(response, depth),
            Value::Stub(stub) => self.stub(stub, depth),
            Value::Promise(stub) => self.promise(stub, depth),
            Value::Readable(_) | Value::Writable(_) | Value::Blob(_) => self.stream(value.take()),
            Value::Bytes(bytes) => self.bytes(bytes, None),
            Value::TypedArray(array) => {
                let modern = self.dialect != Dialect::V0_8;
                self.bytes(array.bytes(), modern.then(|| array.kind().name()))
            }
            Value::Url(url) if self.dialect != Dialect::V0_8 => {
                self.raw("[\"url\",");
                self.string(url)?;
                self.raw("]");
                Ok(())
            }
            Value::String(text) | Value::Url(text) => self.string(text),
            _ => self.atom(value),
        }
    }

    fn atom(&mut self, value: &Value) -> Encoded {
        self.room(32)?;
        match value {
            Value::Null => self.raw("null"),
            Value::Bool(true) => self.raw("true"),
            Value::Bool(false) => self.raw("false"),
            Value::Number(number) => self.number(*number),
            Value::BigInt(number) => {
                self.room(number.as_str().len())?;
                self.raw("[\"bigint\",\"");
                self.raw(number.as_str());
                self.raw("\"]");
            }
            Value::Date(time) => {
                self.raw("[\"date\",");
                if time.is_finite() {
                    self.number(*time);
                } else {
                    self.raw("null");
                }
                self.raw("]");
            }
            Value::Headers(headers) => {
                self.raw("[\"headers\",");
                self.pairs(headers)?;
                self.raw("]");
            }
            _ => self.raw("[\"undefined\"]"),
        }
        Ok(())
    }

    fn number(&mut self, number: f64) {
        if let Some(number) = whole(number) {
            self.integer(number);
        } else if number.is_finite() {
            // serde_json writes the shortest form that reads back the same.
            self.raw(
                &serde_json::Number::from_f64(number)
                    .map_or_else(String::new, |number| number.to_string()),
            );
        } else if number.is_nan() {
            self.raw("[\"nan\"]");
        } else if number > 0.0 {
            self.raw("[\"inf\"]");
        } else {
            self.raw("[\"-inf\"]");
        }
    }

    pub(crate) fn string(&mut self, text: &str) -> Encoded {
        self.room(text.len() + 2)?;
        self.out.reserve(text.len() + 2);
        self.out.push('"');
        let mut rest = text;
        while let Some(at) = first_special(rest.as_bytes()) {
            let (plain, special) = rest.split_at(at);
            self.out.push_str(plain);
            let byte = special.bytes().next().unwrap_or_default();
            match byte {
                b'"' => self.out.push_str("\\\""),
                b'\\' => self.out.push_str("\\\\"),
                b'\n' => self.out.push_str("\\n"),
                b'\r' => self.out.push_str("\\r"),
                b'\t' => self.out.push_str("\\t"),
                _ => self.out.push_str(&format!("\\u{byte:04x}")),
            }
            // What is special is one byte long.
            rest = special.get(1..).unwrap_or_default();
            self.room(rest.len())?;
        }
        self.out.push_str(rest);
        self.out.push('"');
        self.room(0)
    }

    fn bytes(&mut self, bytes: &[u8], kind: Option<&str>) -> Encoded {
        let length = bytes.len() / 3 * 4 + 48;
        self.room(length)?;
        self.out.reserve(length);
        self.raw("[\"bytes\",\"");
        STANDARD_NO_PAD.encode_string(bytes, &mut self.out);
        if let Some(kind) = kind {
            self.raw("\",\"");
            self.raw(kind);
        }
        self.raw("\"]");
        Ok(())
    }

    fn array(&mut self, items: &mut [Value], depth: usize) -> Encoded {
        self.raw("[");
        self.list(items, depth + 1)?;
        self.raw("]");
        Ok(())
    }

    /// A list of expressions that is not escaped, such as arguments.
    pub(crate) fn list(&mut self, items: &mut [Value], depth: usize) -> Encoded {
        self.raw("[");
        for (index, item) in items.iter_mut().enumerate() {
            if index > 0 {
                self.raw(",");
            }
            self.value(item, depth)?;
        }
        self.raw("]");
        self.room(0)
    }

    pub(crate) fn path(&mut self, path: &[Key]) -> Encoded {
        self.raw("[");
        for (index, key) in path.iter().enumerate() {
            if index > 0 {
                self.raw(",");
            }
            match key {
                Key::Name(name) => self.string(name)?,
                Key::Index(number) => self.raw(&number.to_string()),
            }
        }
        self.raw("]");
        Ok(())
    }

    fn object(&mut self, object: &mut Object, depth: usize) -> Encoded {
        self.fields(object, depth, false, |_| false)
    }

    fn fields(
        &mut self,
        object: &mut Object,
        depth: usize,
        lenient: bool,
        skip: impl Fn(&str) -> bool,
    ) -> Encoded {
        self.raw("{");
        let mut first = true;
        for (key, value) in object.iter_mut() {
            if is_reserved(key) || skip(key) {
                continue;
            }
            let start = self.out.len();
            if !first {
                self.raw(",");
            }
            let written = self.string(key).and_then(|()| {
                self.raw(":");
                self.value(value, depth + 1)
            });
            match written {
                Ok(()) => first = false,
                // An error loses a property rather than getting lost itself.
                Err(_) if lenient && matches!(self.place, Place::Bare) => self.out.truncate(start),
                Err(error) => return Err(error),
            }
        }
        self.raw("}");
        self.room(0)
    }

    fn error(&mut self, error: &mut ErrorValue, depth: usize) -> Encoded {
        self.raw("[\"error\",");
        self.string(&error.name)?;
        self.raw(",");
        self.string(&error.message)?;
        let own = |key: &str| matches!(key, "name" | "message" | "stack");
        let props = error
            .props
            .iter()
            .any(|(key, _)| !own(key) && !is_reserved(key));
        match &error.stack {
            Some(stack) => {
                self.raw(",");
                self.string(stack)?;
            }
            None if props => self.raw(",null"),
            None => {}
        }
        if props {
            self.raw(",");
            self.fields(&mut error.props, depth, true, own)?;
        }
        self.raw("]");
        Ok(())
    }
}
