//! The values of the Fetch standard that the wire carries.

use crate::object::Object;
use crate::stream::ReadableStream;
use crate::value::Value;

/// Bytes with a media type. The bytes always travel as a stream.
#[derive(Debug)]
pub struct Blob {
    /// The media type, maybe empty.
    pub media_type: String,
    /// The bytes, as [`Value::Bytes`] chunks.
    pub content: ReadableStream,
}

/// An HTTP request.
#[derive(Debug)]
pub struct Request {
    /// The absolute address.
    pub url: String,
    /// The method; the wire omits `GET`.
    pub method: String,
    /// Header fields in order.
    pub headers: Vec<(String, String)>,
    /// `Null`, `String`, `Bytes` or `Readable`.
    pub body: Value,
    /// Every other field (`redirect`, `mode`, …), plain.
    pub init: Object,
}

/// An HTTP response.
#[derive(Debug)]
pub struct Response {
    /// The status; the wire omits 200.
    pub status: u16,
    /// The reason phrase, maybe empty.
    pub status_text: String,
    /// Header fields in order.
    pub headers: Vec<(String, String)>,
    /// `Null`, `String`, `Bytes` or `Readable`.
    pub body: Value,
    /// Every other field, plain.
    pub init: Object,
}
