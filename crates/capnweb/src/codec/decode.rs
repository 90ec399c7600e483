//! Reads expressions, straight from the text of the message.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;

use super::scan::{Malformed, Scanner};
use crate::bigint::BigInt;
use crate::codes;
use crate::error::ErrorValue;
use crate::fetch::{Blob, Request, Response};
use crate::limits::Limits;
use crate::object::{Object, ObjectBuilder};
use crate::path::{Key, Path, is_reserved};
use crate::session::Shared;
use crate::stub::Stub;
use crate::value::{Value, whole};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Names that an error keeps; any other becomes `Error`.
const ERROR_NAMES: [&str; 8] = [
    "Error",
    "EvalError",
    "RangeError",
    "ReferenceError",
    "SyntaxError",
    "TypeError",
    "URIError",
    "AggregateError",
];

/// Typed arrays and the size of their elements.
const BYTE_TYPES: [(&str, usize); 13] = [
    ("ArrayBuffer", 1),
    ("DataView", 1),
    ("Int8Array", 1),
    ("Uint8Array", 1),
    ("Uint8ClampedArray", 1),
    ("Int16Array", 2),
    ("Uint16Array", 2),
    ("Int32Array", 4),
    ("Uint32Array", 4),
    ("BigInt64Array", 8),
    ("BigUint64Array", 8),
    ("Float32Array", 4),
    ("Float64Array", 8),
];

/// Why an expression cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The peer breaks the protocol: the session ends.
    Fatal(Box<ErrorValue>),
    /// Only what the expression is for fails.
    Refused(Box<ErrorValue>),
}

impl Fault {
    pub(crate) fn into_error(self) -> ErrorValue {
        match self {
            Self::Fatal(error) | Self::Refused(error) => *error,
        }
    }

    pub(crate) fn fatal(message: impl Into<String>) -> Self {
        Self::Fatal(Box::new(
            ErrorValue::type_error(message).with_prop("code", codes::PROTOCOL_ERROR),
        ))
    }

    fn complex(message: String) -> Self {
        Self::Refused(Box::new(ErrorValue::coded(
            codes::VALUE_TOO_COMPLEX,
            message,
        )))
    }
}

impl From<Malformed> for Fault {
    fn from(Malformed(at): Malformed) -> Self {
        Self::Fatal(Box::new(
            ErrorValue::new(
                "SyntaxError",
                format!("The message is not JSON at byte {at}."),
            )
            .with_prop("code", codes::PROTOCOL_ERROR),
        ))
    }
}

/// A call on something that this side exported.
pub(crate) struct Call {
    pub(crate) id: i64,
    pub(crate) path: Path,
    pub(crate) args: Vec<Value>,
}

/// The headers, the body and the other fields of a request or response.
type Init = (Vec<(String, String)>, Value, Object);

type Decoded<T> = Result<T, Fault>;

/// Reads one message.
pub(crate) struct Decoder<'a> {
    scan: Scanner<'a>,
    session: Option<&'a Arc<Shared>>,
    depth: usize,
    values: usize,
    digits: usize,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(text: &'a str, session: Option<&'a Arc<Shared>>, limits: &Limits) -> Self {
        Self {
            scan: Scanner::new(text),
            session,
            depth: limits.depth,
            values: limits.values,
            digits: limits.bigint_digits,
        }
    }

    pub(crate) fn scan(&mut self) -> &mut Scanner<'a> {
        &mut self.scan
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
        self.session.ok_or_else(|| {
            Fault::fatal(format!("Cannot deserialize {what} without an RPC session."))
        })
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
            "remap" => self.remap(start),
            "export" | "promise" | "writable" | "readable" => self.offered(tag, start),
            _ => Err(self.unknown(start)),
        }
    }

    fn bytes(&mut self, start: usize) -> Decoded<Value> {
        let text = self.text(start)?;
        let bytes = BASE64
            .decode(text.as_bytes())
            .map_err(|_| Fault::fatal("Bytes are not valid base64."))?;
        if self.scan.take(b',') {
            let name = self.text(start)?;
            let Some((_, size)) = BYTE_TYPES.iter().find(|(known, _)| *known == name) else {
                let shown: String = name.chars().take(64).collect();
                return Err(Fault::fatal(format!("Unknown bytes type marker: {shown}")));
            };
            if bytes.len() % size != 0 {
                return Err(Fault::fatal(format!(
                    "Invalid byte length {} for {name}; expected a multiple of {size}",
                    bytes.len()
                )));
            }
        }
        self.close(start)?;
        Ok(Value::Bytes(Bytes::from(bytes)))
    }

    fn bigint(&mut self, start: usize) -> Decoded<Value> {
        let text = self.text(start)?;
        if text.len() > self.digits {
            return Err(Fault::complex(format!(
                "The big integer has more than {} digits.",
                self.digits
            )));
        }
        let number: BigInt = text
            .parse()
            .map_err(|_| Fault::fatal("A big integer is not decimal digits."))?;
        self.close(start)?;
        Ok(Value::BigInt(number))
    }

    fn date(&mut self, start: usize) -> Decoded<Value> {
        let time = match self.scan.peek() {
            Some(b'n') => {
                self.scan.word("null")?;
                f64::NAN
            }
            Some(b'-' | b'0'..=b'9') => self.scan.number()?,
            _ => return Err(self.unknown(start)),
        };
        self.close(start)?;
        Ok(Value::Date(time))
    }

    fn error(&mut self, start: usize, depth: usize) -> Decoded<Value> {
        let name = self.text(start)?;
        self.comma(start)?;
        let message = self.text(start)?;
        let name = ERROR_NAMES
            .into_iter()
            .find(|known| *known == name)
            .unwrap_or("Error");
        let mut error = ErrorValue::new(name, message);
        if self.scan.take(b',') {
            if self.scan.peek() == Some(b'"') {
                error.stack = Some(self.scan.string()?.into_owned());
            } else {
                self.scan.skip()?;
            }
            if self.scan.take(b',') {
                if self.scan.peek() != Some(b'{') {
                    return Err(self.unknown(start));
                }
                error.props =
                    self.object(depth, |key| matches!(key, "name" | "message" | "stack"))?;
            }
        }
        self.close(start)?;
        Ok(error.into())
    }

    /// Header fields: a raw list of pairs.
    fn pairs(&mut self, start: usize) -> Decoded<Vec<(String, String)>> {
        let mut pairs = Vec::new();
        if !self.scan.take(b'[') {
            return Err(self.unknown(start));
        }
        if self.scan.take(b']') {
            return Ok(pairs);
        }
        loop {
            self.values = self
                .values
                .checked_sub(1)
                .ok_or_else(|| Fault::complex("The message has too many parts.".to_owned()))?;
            if !self.scan.take(b'[') {
                return Err(self.unknown(start));
            }
            let name = self.text(start)?.into_owned();
            self.comma(start)?;
            pairs.push((name, self.text(start)?.into_owned()));
            self.close(start)?;
            if !self.scan.take(b',') {
                self.close(start)?;
                return Ok(pairs);
            }
        }
    }

    /// The last part of a request or response: raw header pairs, an expression
    /// as body, everything else plain JSON.
    fn init(&mut self, start: usize, depth: usize) -> Decoded<Init> {
        let (mut headers, mut body, mut rest) = (Vec::new(), Value::Null, ObjectBuilder::default());
        if !self.scan.take(b'{') {
            return Err(self.unknown(start));
        }
        if !self.scan.take(b'}') {
            loop {
                let key = self.text(start)?;
                self.scan.expect(b':')?;
                match &*key {
                    "headers" => headers = self.pairs(start)?,
                    "body" => body = self.body(start, depth)?,
                    "signal" | "webSocket" => return Err(self.unknown(start)),
                    _ => {
                        let from = self.scan.position();
                        self.scan.skip()?;
                        let json = serde_json::from_str(self.scan.since(from));
                        let json: serde_json::Value =
                            json.map_err(|_| Fault::from(Malformed(from)))?;
                        if !is_reserved(&key) && !json.is_null() {
                            rest.put(key.into_owned(), Value::from_json(json));
                        }
                    }
                }
                if !self.scan.take(b',') {
                    self.scan.expect(b'}')?;
                    break;
                }
            }
        }
        self.close(start)?;
        Ok((headers, body, rest.finish()))
    }

    fn body(&mut self, start: usize, depth: usize) -> Decoded<Value> {
        match self.value(depth + 1)? {
            body @ (Value::Null | Value::String(_) | Value::Bytes(_) | Value::Readable(_)) => {
                Ok(body)
            }
            _ => Err(self.unknown(start)),
        }
    }

    fn request(&mut self, start: usize, depth: usize) -> Decoded<Value> {
        let url = self.text(start)?.into_owned();
        self.comma(start)?;
        let (headers, body, mut init) = self.init(start, depth)?;
        init.remove("duplex");
        let method = match init.remove("method") {
            Some(Value::String(method)) => method,
            _ => "GET".to_owned(),
        };
        Ok(Value::Request(Box::new(Request {
            url,
            method,
            headers,
            body,
            init,
        })))
    }

    fn response(&mut self, start: usize, depth: usize) -> Decoded<Value> {
        let body = self.body(start, depth)?;
        self.comma(start)?;
        let (headers, _, mut init) = self.init(start, depth)?;
        let status = match init.remove("status").as_ref().map(Value::as_u64) {
            None => 200,
            Some(status) => match status.and_then(|status| u16::try_from(status).ok()) {
                Some(status) => status,
                None => return Err(self.unknown(start)),
            },
        };
        let status_text = match init.remove("statusText") {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        Ok(Value::Response(Box::new(Response {
            status,
            status_text,
            headers,
            body,
            init,
        })))
    }

    fn blob(&mut self, start: usize, depth: usize) -> Decoded<Value> {
        let media_type = self.text(start)?.into_owned();
        self.comma(start)?;
        let Value::Readable(content) = self.value(depth + 1)? else {
            return Err(self.unknown(start));
        };
        self.close(start)?;
        Ok(Value::Blob(Box::new(Blob {
            media_type,
            content,
        })))
    }

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
    fn reference(&mut self, pipeline: bool, start: usize, depth: usize) -> Decoded<Value> {
        let session = self.session("a reference")?;
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
        let size = self.scan.position().saturating_sub(start);
        let stub = session.refer(id, path, args, size)?;
        Ok(if pipeline {
            Value::Promise(stub)
        } else {
            Value::Stub(stub)
        })
    }

    /// `map` is refused for the call that uses it. What the captures export is
    /// let go of.
    fn remap(&mut self, start: usize) -> Decoded<Value> {
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

    fn offered(&mut self, tag: &str, start: usize) -> Decoded<Value> {
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
