//! Bytes in JSON.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that are mostly text: names, paths, link targets, attribute values. In
/// JSON a string if they are UTF-8, else `{"base64": "…"}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteText(Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Json<'a> {
    Text(std::borrow::Cow<'a, str>),
    Base64 { base64: String },
}

impl ByteText {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for ByteText {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&[u8]> for ByteText {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl fmt::Debug for ByteText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Display for ByteText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

impl Serialize for ByteText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => Json::Text(text.into()),
            Err(_) => Json::Base64 {
                base64: STANDARD.encode(&self.0),
            },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ByteText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Text(text) => Ok(Self(text.into_owned().into_bytes())),
            Json::Base64 { base64 } => STANDARD
                .decode(base64)
                .map(Self)
                .map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_is_a_string_and_other_bytes_are_base64() {
        for (bytes, json) in [
            (&b"a\n\"b\""[..], r#""a\n\"b\"""#),
            (b"", r#""""#),
            (b"\xff\x00", r#"{"base64":"/wA="}"#),
        ] {
            let text = ByteText::from(bytes);
            assert_eq!(serde_json::to_string(&text).unwrap(), json);
            assert_eq!(serde_json::from_str::<ByteText>(json).unwrap(), text);
        }
    }
}
