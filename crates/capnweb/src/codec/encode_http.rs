//! Headers, requests and responses, as they are written.

use super::encode::{Encoded, Encoder};
use crate::fetch::{Request, Response};
use crate::object::Object;
use crate::path::is_reserved;

impl Encoder<'_> {
    pub(super) fn pairs(&mut self, pairs: &[(String, String)]) -> Encoded {
        self.raw("[");
        for (index, (name, value)) in pairs.iter().enumerate() {
            self.raw(if index > 0 { ",[" } else { "[" });
            self.string(name)?;
            self.raw(",");
            self.string(value)?;
            self.raw("]");
        }
        self.raw("]");
        self.room(0)
    }

    pub(super) fn request(&mut self, request: &mut Request, depth: usize) -> Encoded {
        self.raw("[\"request\",");
        self.string(&request.url)?;
        self.raw(",{\"method\":");
        self.string(&request.method)?;
        if !request.headers.is_empty() {
            self.raw(",\"headers\":");
            self.pairs(&request.headers)?;
        }
        if !request.body.is_nullish() {
            self.raw(",\"body\":");
            self.value(&mut request.body, depth + 1)?;
            self.raw(",\"duplex\":\"half\"");
        }
        self.init(
            &request.init,
            &["method", "headers", "body", "duplex", "signal"],
        )?;
        self.raw("}]");
        Ok(())
    }

    pub(super) fn response(&mut self, response: &mut Response, depth: usize) -> Encoded {
        self.raw("[\"response\",");
        if response.body.is_undefined() {
            self.raw("null");
        } else {
            self.value(&mut response.body, depth + 1)?;
        }
        self.raw(",{\"status\":");
        self.integer(response.status.into());
        if !response.status_text.is_empty() {
            self.raw(",\"statusText\":");
            self.string(&response.status_text)?;
        }
        if !response.headers.is_empty() {
            self.raw(",\"headers\":");
            self.pairs(&response.headers)?;
        }
        self.init(
            &response.init,
            &["status", "statusText", "headers", "webSocket"],
        )?;
        self.raw("}]");
        Ok(())
    }

    /// Further fields, which are plain JSON.
    fn init(&mut self, init: &Object, own: &[&str]) -> Encoded {
        for (key, value) in init.iter() {
            let Ok(json) = value.to_json() else { continue };
            if own.contains(&key) || is_reserved(key) {
                continue;
            }
            self.raw(",");
            self.string(key)?;
            let json = json.to_string();
            self.room(json.len())?;
            self.raw(":");
            self.raw(&json);
        }
        Ok(())
    }
}
