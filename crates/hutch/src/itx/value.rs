//! Between RPC values and the tagged JSON of `prelude/values.js`.

use super::host::Tables;
use base64::{Engine, prelude::BASE64_STANDARD};
use capnweb::{ErrorValue, Key, Object, Path, Value};
use serde_json::{Map, Value as Json, json};

/// Encodes a value for the script. References and streams are put into the tables.
pub fn encode(tables: &mut Tables, value: Value) -> Json {
    match value {
        Value::Undefined => json!(["u"]),
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(truth),
        Value::Number(number) => encode_number(number),
        Value::String(text) | Value::Url(text) => Json::String(text),
        Value::BigInt(number) => json!(["i", number.as_str()]),
        Value::Date(millis) => json!(["d", serde_json::Number::from_f64(millis)]),
        Value::Bytes(bytes) => json!(["b", BASE64_STANDARD.encode(&bytes)]),
        Value::TypedArray(array) => json!(["b", BASE64_STANDARD.encode(array.bytes())]),
        Value::Array(items) => {
            let items: Vec<_> = items.into_iter().map(|item| encode(tables, item)).collect();
            json!(["a", items])
        }
        Value::Object(object) => Json::Object(encode_object(tables, object)),
        Value::Error(error) => json!(["e", encode_error(tables, *error)]),
        Value::Headers(pairs) => {
            let pairs: Vec<_> = pairs
                .into_iter()
                .map(|(name, value)| json!(["a", [name, value]]))
                .collect();
            json!(["a", pairs])
        }
        Value::Request(request) => json!({
            "url": request.url,
            "method": request.method,
            "headers": encode(tables, Value::Headers(request.headers)),
            "body": encode(tables, request.body),
        }),
        Value::Response(response) => json!({
            "status": response.status,
            "statusText": response.status_text,
            "headers": encode(tables, Value::Headers(response.headers)),
            "body": encode(tables, response.body),
        }),
        // No received blob is more than its stream here.
        Value::Blob(_) => json!(["u"]),
        Value::Stub(stub) | Value::Promise(stub) => json!(["s", tables.add_object(stub)]),
        Value::Readable(stream) => json!(["r", tables.add_reader(stream)]),
        Value::Writable(sink) => json!(["w", tables.add_sink(sink)]),
    }
}

/// Encodes an error for the script, as the body of its tag.
pub fn encode_error(tables: &mut Tables, error: ErrorValue) -> Json {
    json!({
        "name": error.name,
        "message": error.message,
        "stack": error.stack,
        "props": encode_object(tables, error.props),
    })
}

fn encode_object(tables: &mut Tables, object: Object) -> Map<String, Json> {
    object
        .into_iter()
        .map(|(key, value)| (key, encode(tables, value)))
        .collect()
}

fn encode_number(number: f64) -> Json {
    match serde_json::Number::from_f64(number) {
        // `1.0` and `1` are one number to the script, the short one is cheaper.
        Some(_)
            if number.fract() == 0.0
                && number.abs() < 1e15
                && (number != 0.0 || number.is_sign_positive()) =>
        {
            json!(number as i64)
        }
        Some(number) => Json::Number(number),
        None if number.is_nan() => json!(["n", "nan"]),
        None if number > 0.0 => json!(["n", "inf"]),
        None => json!(["n", "-inf"]),
    }
}

/// Decodes what the script sent. `Err` only for what the prelude never writes.
pub fn decode(tables: &mut Tables, data: Json) -> Result<Value, String> {
    Ok(match data {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(truth),
        Json::Number(number) => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::String(text),
        Json::Object(map) => Value::Object(decode_object(tables, map)?),
        Json::Array(parts) => decode_tag(tables, parts)?,
    })
}

/// Decodes a list of arguments, written without a tag.
pub fn decode_args(tables: &mut Tables, text: &str) -> Result<Vec<Value>, String> {
    let items: Vec<Json> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    items.into_iter().map(|item| decode(tables, item)).collect()
}

/// Reads JSON text of the prelude.
pub fn json(text: &str) -> Result<Json, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Decodes one value from text.
pub fn decode_text(tables: &mut Tables, text: &str) -> Result<Value, String> {
    decode(tables, json(text)?)
}

/// Decodes an error from the text of its tag's body.
pub fn decode_error(tables: &mut Tables, text: &str) -> ErrorValue {
    let decoded = match serde_json::from_str(text) {
        Ok(Json::Object(map)) => error_from(tables, map),
        _ => Err("no error".to_owned()),
    };
    decoded.unwrap_or_else(|reason| ErrorValue::new("Error", reason))
}

fn decode_object(tables: &mut Tables, map: Map<String, Json>) -> Result<Object, String> {
    let mut pairs = Vec::with_capacity(map.len());
    for (key, value) in map {
        pairs.push((key, decode(tables, value)?));
    }
    Ok(pairs.into_iter().collect())
}

fn decode_tag(tables: &mut Tables, parts: Vec<Json>) -> Result<Value, String> {
    let mut parts = parts.into_iter();
    let (tag, body) = (parts.next(), parts.next().unwrap_or(Json::Null));
    let tag = tag.as_ref().and_then(Json::as_str).unwrap_or_default();
    let id = || {
        let id = body.as_u64().and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| format!("the tag {tag} has no id"))
    };
    Ok(match (tag, &body) {
        ("u", _) => Value::Undefined,
        ("n", Json::String(text)) => Value::Number(match text.as_str() {
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            _ => f64::NAN,
        }),
        ("i", Json::String(text)) => {
            Value::BigInt(text.parse().map_err(|_| "not a big integer".to_owned())?)
        }
        ("d", _) => Value::Date(body.as_f64().unwrap_or(f64::NAN)),
        ("b", Json::String(text)) => {
            let bytes = BASE64_STANDARD
                .decode(text)
                .map_err(|error| error.to_string())?;
            Value::Bytes(bytes.into())
        }
        ("a", _) => {
            let Json::Array(items) = body else {
                return Err("the tag a has no items".to_owned());
            };
            let items: Result<_, _> = items.into_iter().map(|item| decode(tables, item)).collect();
            Value::Array(items?)
        }
        ("e", _) => {
            let Json::Object(map) = body else {
                return Err("the tag e has no error".to_owned());
            };
            Value::Error(Box::new(error_from(tables, map)?))
        }
        ("p", _) => {
            let path = path_from(parts.next().unwrap_or(Json::Null))?;
            let fetched = parts.next().and_then(|fetched| fetched.as_bool());
            tables.reference(id()?, path, fetched.unwrap_or(false))?
        }
        ("f", _) => Value::Stub(tables.function(id()?)),
        ("r", _) => Value::Readable(tables.take_readable(id()?)?),
        ("w", _) => Value::Writable(tables.take_writable(id()?)?),
        _ => return Err(format!("unknown tag {tag}")),
    })
}

fn error_from(tables: &mut Tables, mut map: Map<String, Json>) -> Result<ErrorValue, String> {
    let mut text = |name: &str| match map.remove(name) {
        Some(Json::String(text)) => text,
        _ => String::new(),
    };
    let mut error = ErrorValue::new(text("name"), text("message"));
    if let Some(Json::Object(props)) = map.remove("props") {
        error.props = decode_object(tables, props)?;
    }
    Ok(error)
}

/// Reads a path: a list of names. A name of digits alone is an index, for only
/// lists have such parts.
pub fn path_from(data: Json) -> Result<Path, String> {
    let names: Vec<String> = serde_json::from_value(data).map_err(|error| error.to_string())?;
    Ok(names.into_iter().map(key_from).collect())
}

fn key_from(name: String) -> Key {
    match name.parse::<u64>() {
        Ok(index) if index.to_string() == name => Key::Index(index),
        _ => Key::Name(name),
    }
}
