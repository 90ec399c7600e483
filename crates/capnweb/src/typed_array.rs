//! JavaScript's views of bytes.

use bytes::Bytes;

/// Bytes that are an array of something else than unsigned bytes, in the
/// machine's order, which is little-endian wherever JavaScript runs.
///
/// Sent as plain bytes, and never received, unless the
/// [`Dialect`](crate::Dialect) says that the peer knows typed arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedArray {
    kind: ArrayKind,
    bytes: Bytes,
}

/// The type of a [`TypedArray`], named as in JavaScript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are JavaScript's")]
pub enum ArrayKind {
    ArrayBuffer,
    DataView,
    Int8Array,
    Uint8ClampedArray,
    Int16Array,
    Uint16Array,
    Int32Array,
    Uint32Array,
    BigInt64Array,
    BigUint64Array,
    Float32Array,
    Float64Array,
}

const KINDS: [(ArrayKind, &str, usize); 12] = [
    (ArrayKind::ArrayBuffer, "ArrayBuffer", 1),
    (ArrayKind::DataView, "DataView", 1),
    (ArrayKind::Int8Array, "Int8Array", 1),
    (ArrayKind::Uint8ClampedArray, "Uint8ClampedArray", 1),
    (ArrayKind::Int16Array, "Int16Array", 2),
    (ArrayKind::Uint16Array, "Uint16Array", 2),
    (ArrayKind::Int32Array, "Int32Array", 4),
    (ArrayKind::Uint32Array, "Uint32Array", 4),
    (ArrayKind::BigInt64Array, "BigInt64Array", 8),
    (ArrayKind::BigUint64Array, "BigUint64Array", 8),
    (ArrayKind::Float32Array, "Float32Array", 4),
    (ArrayKind::Float64Array, "Float64Array", 8),
];

impl ArrayKind {
    /// The name in JavaScript, such as `Uint16Array`.
    pub fn name(self) -> &'static str {
        KINDS
            .iter()
            .find(|(kind, ..)| *kind == self)
            .map_or("Uint8Array", |(_, name, _)| name)
    }

    /// The bytes of one element.
    pub fn element_bytes(self) -> usize {
        KINDS
            .iter()
            .find(|(kind, ..)| *kind == self)
            .map_or(1, |(.., size)| *size)
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        KINDS
            .iter()
            .find(|(_, known, _)| *known == name)
            .map(|(kind, ..)| *kind)
    }
}

impl TypedArray {
    /// An array of whole elements; `None` if the last one is cut off.
    pub fn new(kind: ArrayKind, bytes: impl Into<Bytes>) -> Option<Self> {
        let bytes = bytes.into();
        (bytes.len() % kind.element_bytes() == 0).then_some(Self { kind, bytes })
    }

    /// What the bytes are an array of.
    pub fn kind(&self) -> ArrayKind {
        self.kind
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}
