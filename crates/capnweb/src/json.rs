//! Between values and plain JSON or any type that serde knows.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number};

use crate::value::{Value, whole};

/// The value holds something that JSON does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at '{at}' has no JSON form")]
pub struct NotPlain {
    /// What it is, such as `bytes`.
    pub what: &'static str,
    /// Where it is, such as `a.b[3]`.
    pub at: String,
}

/// The value does not have the shape of the type asked for.
#[derive(Debug, thiserror::Error)]
pub enum Mismatch {
    /// It holds something that JSON does not have.
    #[error(transparent)]
    NotPlain(#[from] NotPlain),
    /// A field is missing, of another type or out of range.
    #[error(transparent)]
    Shape(#[from] serde_json::Error),
}

impl Value {
    /// The same data as a value.
    pub fn from_json(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(truth) => Self::Bool(truth),
            serde_json::Value::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(text) => Self::String(text),
            serde_json::Value::Array(items) => {
                Self::Array(items.into_iter().map(Self::from_json).collect())
            }
            serde_json::Value::Object(map) => Self::Object(
                map.into_iter()
                    .map(|(key, value)| (key, Self::from_json(value)))
                    .collect(),
            ),
        }
    }

    /// The same data as JSON. Undefined fields are left out; undefined
    /// elsewhere is null. Whole numbers are written as integers.
    pub fn to_json(&self) -> Result<serde_json::Value, NotPlain> {
        let what = match self {
            Self::Undefined | Self::Null => return Ok(serde_json::Value::Null),
            Self::Bool(truth) => return Ok((*truth).into()),
            Self::Number(number) => match whole(*number) {
                Some(number) => return Ok(number.into()),
                None => match Number::from_f64(*number) {
                    Some(number) => return Ok(serde_json::Value::Number(number)),
                    None => "a number that is not finite",
                },
            },
            Self::String(text) | Self::Url(text) => return Ok(text.as_str().into()),
            Self::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(index, item)| {
                    item.to_json()
                        .map_err(|error| error.below(&format!("[{index}]")))
                });
                return items
                    .collect::<Result<_, _>>()
                    .map(serde_json::Value::Array);
            }
            Self::Object(object) => {
                let pairs = object.iter().filter(|(_, value)| !value.is_undefined());
                let pairs = pairs.map(|(key, value)| {
                    value
                        .to_json()
                        .map(|value| (key.to_owned(), value))
                        .map_err(|error| error.below(key))
                });
                return pairs
                    .collect::<Result<Map<_, _>, _>>()
                    .map(serde_json::Value::Object);
            }
            Self::BigInt(_) => "a big integer",
            Self::Date(_) => "a date",
            Self::Bytes(_) | Self::TypedArray(_) => "bytes",
            Self::Error(_) => "an error",
            Self::Headers(_) => "headers",
            Self::Request(_) => "a request",
            Self::Response(_) => "a response",
            Self::Blob(_) => "a blob",
            Self::Stub(_) => "a reference",
            Self::Promise(_) => "a promise",
            Self::Readable(_) | Self::Writable(_) => "a stream",
        };
        Err(NotPlain {
            what,
            at: String::new(),
        })
    }

    /// Anything that serde can write.
    pub fn serialize<T: Serialize + ?Sized>(data: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_value(data).map(Self::from_json)
    }

    /// Anything that serde can read. Undefined fields count as absent.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T, Mismatch> {
        Ok(serde_json::from_value(self.to_json()?)?)
    }
}

impl NotPlain {
    fn below(mut self, step: &str) -> Self {
        let dot = if self.at.is_empty() || self.at.starts_with('[') {
            ""
        } else {
            "."
        };
        self.at = format!("{step}{dot}{}", self.at);
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::object::Object;

    #[test]
    fn undefined_fields_count_as_absent() {
        #[derive(Deserialize)]
        struct Options {
            encoding: Option<String>,
            size: u32,
        }
        let mut object = Object::new();
        object.insert("encoding", Value::Undefined);
        object.insert("size", 3);
        let options: Options = Value::Object(object).deserialize().unwrap();
        assert_eq!((options.encoding, options.size), (None, 3));
    }

    #[test]
    fn plain_json_comes_back() {
        let json = json!({"a": [1, -2.5, null, "x", true], "b": {}});
        assert_eq!(Value::from_json(json.clone()).to_json().unwrap(), json);
    }

    #[test]
    fn what_json_lacks_is_named_with_its_place() {
        let mut object = Object::new();
        object.insert("b", vec![Value::Null, Value::from(vec![1_u8])]);
        let mut outer = Object::new();
        outer.insert("a", object);
        let error = Value::Object(outer).to_json().unwrap_err();
        assert_eq!(error.to_string(), "bytes at 'a.b[1]' has no JSON form");
    }
}
