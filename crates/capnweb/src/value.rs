//! What travels in calls and results.

use bytes::Bytes;

use crate::bigint::BigInt;
use crate::error::ErrorValue;
use crate::fetch::{Blob, Request, Response};
use crate::object::Object;
use crate::path::{Key, is_reserved};
use crate::stream::{ReadableStream, WritableStream};
use crate::stub::Stub;
use crate::typed_array::TypedArray;

/// A value as JavaScript knows it.
///
/// Streams have a single owner, so a value cannot be cloned; see
/// [`Value::clone_without_streams`].
#[derive(Debug, Default)]
pub enum Value {
    /// `undefined`: an absent argument, field or result.
    #[default]
    Undefined,
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, also one that is not finite.
    Number(f64),
    /// Text.
    String(String),
    /// An integer of any size.
    BigInt(BigInt),
    /// A date in milliseconds since 1970; not a number for an invalid one.
    Date(f64),
    /// Bytes. Every typed array, unless the dialect tells them apart.
    Bytes(Bytes),
    /// A typed array other than `Uint8Array`.
    TypedArray(Box<TypedArray>),
    /// A list.
    Array(Vec<Value>),
    /// A plain object.
    Object(Object),
    /// An error as a value.
    Error(Box<ErrorValue>),
    /// An address. Sent as a string to peers that know no addresses.
    Url(String),
    /// HTTP header fields.
    Headers(Vec<(String, String)>),
    /// An HTTP request.
    Request(Box<Request>),
    /// An HTTP response.
    Response(Box<Response>),
    /// Bytes with a media type.
    Blob(Box<Blob>),
    /// An object or function by reference.
    Stub(Stub),
    /// A result that has not arrived. Only sent: the receiver gets what it
    /// resolves to. Received values never hold one.
    Promise(Stub),
    /// A stream to read.
    Readable(ReadableStream),
    /// A stream to write.
    Writable(WritableStream),
}

impl Value {
    /// The value under a key, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object().and_then(|object| object.get(key))
    }

    /// Whether this is `undefined`.
    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined)
    }

    /// Whether this is `undefined` or `null`.
    pub fn is_nullish(&self) -> bool {
        matches!(self, Self::Undefined | Self::Null)
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The number, if it is a whole one that a double holds exactly.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_f64().and_then(whole)
    }

    /// The number, if it is a whole one from 0 that a double holds exactly.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i64().and_then(|number| u64::try_from(number).ok())
    }

    /// The boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::TypedArray(array) => Some(array.bytes()),
            _ => None,
        }
    }

    /// The elements of a list.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The plain object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The reference.
    pub fn as_stub(&self) -> Option<&Stub> {
        match self {
            Self::Stub(stub) => Some(stub),
            _ => None,
        }
    }

    /// Takes the value out and leaves `undefined`.
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// A copy with `undefined` where a stream is, for a stream has one owner.
    #[must_use]
    pub fn clone_without_streams(&self) -> Value {
        match self {
            Self::Undefined | Self::Readable(_) | Self::Writable(_) | Self::Blob(_) => {
                Self::Undefined
            }
            Self::Null => Self::Null,
            Self::Bool(truth) => Self::Bool(*truth),
            Self::Number(number) => Self::Number(*number),
            Self::String(text) => Self::String(text.clone()),
            Self::BigInt(number) => Self::BigInt(number.clone()),
            Self::Date(time) => Self::Date(*time),
            Self::Bytes(bytes) => Self::Bytes(bytes.clone()),
            Self::TypedArray(array) => Self::TypedArray(array.clone()),
            Self::Array(items) => {
                Self::Array(items.iter().map(Self::clone_without_streams).collect())
            }
            Self::Object(object) => Self::Object(object.clone_without_streams()),
            Self::Error(error) => Self::Error(error.clone()),
            Self::Url(url) => Self::Url(url.clone()),
            Self::Headers(headers) => Self::Headers(headers.clone()),
            Self::Request(request) => Self::Request(Box::new(Request {
                url: request.url.clone(),
                method: request.method.clone(),
                headers: request.headers.clone(),
                body: request.body.clone_without_streams(),
                init: request.init.clone_without_streams(),
            })),
            Self::Response(response) => Self::Response(Box::new(Response {
                status: response.status,
                status_text: response.status_text.clone(),
                headers: response.headers.clone(),
                body: response.body.clone_without_streams(),
                init: response.init.clone_without_streams(),
            })),
            Self::Stub(stub) => Self::Stub(stub.clone()),
            Self::Promise(stub) => Self::Promise(stub.clone()),
        }
    }

    /// A copy that takes the streams along.
    pub(crate) fn share(&mut self) -> Value {
        match self {
            Self::Readable(_) | Self::Writable(_) | Self::Blob(_) => self.take(),
            Self::Array(items) => Self::Array(items.iter_mut().map(Self::share).collect()),
            Self::Object(object) => Self::Object(object.share()),
            Self::Request(request) => {
                let body = request.body.share();
                let mut copy = self.clone_without_streams();
                if let Self::Request(request) = &mut copy {
                    request.body = body;
                }
                copy
            }
            Self::Response(response) => {
                let body = response.body.share();
                let mut copy = self.clone_without_streams();
                if let Self::Response(response) = &mut copy {
                    response.body = body;
                }
                copy
            }
            other => other.clone_without_streams(),
        }
    }

    /// About how many bytes the value takes.
    pub(crate) fn weight(&self) -> usize {
        let pairs = |pairs: &[(String, String)]| {
            pairs
                .iter()
                .map(|(name, value)| name.len() + value.len() + 48)
                .sum()
        };
        size_of::<Self>()
            + match self {
                Self::String(text) | Self::Url(text) => text.len(),
                Self::BigInt(number) => number.as_str().len(),
                Self::Bytes(bytes) => bytes.len(),
                Self::TypedArray(array) => array.bytes().len(),
                Self::Array(items) => items.iter().map(Self::weight).sum(),
                Self::Object(object) => object.weight(),
                Self::Error(error) => error.weight(),
                Self::Headers(headers) => pairs(headers),
                Self::Request(request) => {
                    request.url.len()
                        + pairs(&request.headers)
                        + request.body.weight()
                        + request.init.weight()
                }
                Self::Response(response) => {
                    pairs(&response.headers) + response.body.weight() + response.init.weight()
                }
                _ => 0,
            }
    }

    /// Steps into a part. `None` stands for `undefined`.
    pub(crate) fn step(&mut self, key: &Key) -> Option<&mut Value> {
        match (self, key) {
            (Self::Object(object), Key::Name(name)) if !is_reserved(name) => object.get_mut(name),
            (Self::Error(error), Key::Name(name)) if !is_reserved(name) => {
                error.props.get_mut(name)
            }
            (Self::Array(items), Key::Index(index)) => usize::try_from(*index)
                .ok()
                .and_then(|index| items.get_mut(index)),
            _ => None,
        }
    }
}

/// The whole number of a double, if it is one that a double holds exactly.
pub(crate) fn whole(number: f64) -> Option<i64> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() <= MOST).then_some(number as i64)
}

impl From<()> for Value {
    fn from((): ()) -> Self {
        Self::Undefined
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

macro_rules! from_number {
    ($($number:ty),*) => {$(
        impl From<$number> for Value {
            fn from(number: $number) -> Self {
                Self::Number(f64::from(number))
            }
        }
    )*};
}
from_number!(f64, f32, i8, i16, i32, u8, u16, u32);

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<TypedArray> for Value {
    fn from(array: TypedArray) -> Self {
        Self::TypedArray(Box::new(array))
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(items)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

impl From<ErrorValue> for Value {
    fn from(error: ErrorValue) -> Self {
        Self::Error(Box::new(error))
    }
}

impl From<Stub> for Value {
    fn from(stub: Stub) -> Self {
        Self::Stub(stub)
    }
}

impl From<ReadableStream> for Value {
    fn from(stream: ReadableStream) -> Self {
        Self::Readable(stream)
    }
}

impl From<WritableStream> for Value {
    fn from(stream: WritableStream) -> Self {
        Self::Writable(stream)
    }
}

impl<V: Into<Value>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Undefined, Into::into)
    }
}
