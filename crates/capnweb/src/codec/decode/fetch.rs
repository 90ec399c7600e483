//! Headers, requests, responses and blobs.

use super::super::scan::Malformed;
use super::{Decoded, Decoder, Fault};
use crate::fetch::{Blob, Request, Response};
use crate::object::{Object, ObjectBuilder};
use crate::path::is_reserved;
use crate::value::Value;

/// The headers, the body and the other fields of a request or response.
type Init = (Vec<(String, String)>, Value, Object);

impl Decoder<'_> {
    /// Header fields: a raw list of pairs.
    pub(super) fn pairs(&mut self, start: usize) -> Decoded<Vec<(String, String)>> {
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

    pub(super) fn request(&mut self, start: usize, depth: usize) -> Decoded<Value> {
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

    pub(super) fn response(&mut self, start: usize, depth: usize) -> Decoded<Value> {
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

    pub(super) fn blob(&mut self, start: usize, depth: usize) -> Decoded<Value> {
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
}
