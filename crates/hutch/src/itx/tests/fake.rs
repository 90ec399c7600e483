//! A made-up project.

use capnweb::{
    CallFuture, ErrorValue, Key, Object, Path, ReadableStream, Stub, Target, Value, not_a_function,
};
use futures_util::{FutureExt, future::ready};
use std::sync::{Arc, Mutex};

/// The object behind `itx`. It notes every call.
#[derive(Debug, Default)]
pub struct Fake {
    pub calls: Mutex<Vec<String>>,
}

impl Target for Fake {
    fn call(self: Arc<Self>, path: Path, mut args: Vec<Value>) -> CallFuture {
        let name = capnweb::display_path(&path);
        self.calls.lock().unwrap().push(name.clone());
        let mut first = || args.first_mut().map(Value::take).unwrap_or_default();
        match name.as_str() {
            "echo" => ready(Ok(first())).boxed(),
            "kind" => ready(Ok(kind(&first()).into())).boxed(),
            "fail" => ready(Err(failure())).boxed(),
            "never" => std::future::pending().boxed(),
            "sandboxes.get" => ready(Ok(Value::Stub(Stub::local(self)))).boxed(),
            "create" => ready(Ok(Value::Stub(Stub::local(self)))).boxed(),
            "exec" => ready(Ok(Value::from_json(serde_json::json!({
                "exitCode": 0, "stdout": first().as_str().unwrap_or_default(), "nested": {"list": [1, 2, 3]},
            })))).boxed(),
            "apply" => {
                let function = first();
                async move {
                    let Value::Stub(function) = function else {
                        return Err(ErrorValue::type_error("not a function"));
                    };
                    function.call((), vec![Value::from(20), Value::from(22)]).await
                }
                .boxed()
            }
            "count" => ready(Ok(count(&first()))).boxed(),
            "collect" => collect(first()).boxed(),
            _ => ready(Err(not_a_function(&path))).boxed(),
        }
    }

    fn get(self: Arc<Self>, path: Path) -> CallFuture {
        match path.as_slice() {
            [Key::Name(name)] if name == "projectId" => ready(Ok("prj_1".into())).boxed(),
            [] => ready(Ok(Value::Stub(Stub::local(self)))).boxed(),
            _ => ready(Ok(Value::Undefined)).boxed(),
        }
    }
}

fn failure() -> ErrorValue {
    let mut details = Object::new();
    details.insert("path", "/sandboxes/a");
    ErrorValue::coded("SANDBOX_NOT_FOUND", "no such sandbox")
        .with_prop("details", details)
        .with_prop("httpStatus", 404)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Undefined => "undefined",
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_nan() => "nan",
        Value::Number(number) if number.is_infinite() => "infinite",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::BigInt(_) => "bigint",
        Value::Date(_) => "date",
        Value::Bytes(_) | Value::TypedArray(_) => "bytes",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Error(_) => "error",
        Value::Stub(_) => "stub",
        Value::Readable(_) => "readable",
        Value::Writable(_) => "writable",
        _ => "other",
    }
}

/// A stream of the numbers below `n`, as bytes.
fn count(n: &Value) -> Value {
    let n = n.as_u64().unwrap_or(0);
    let (writer, stream) = ReadableStream::channel(1024);
    tokio::spawn(async move {
        for number in 0..n {
            if writer.write(vec![number as u8]).await.is_err() {
                return;
            }
        }
        writer.close();
    });
    Value::Readable(stream)
}

async fn collect(stream: Value) -> Result<Value, ErrorValue> {
    let Value::Readable(mut stream) = stream else {
        return Err(ErrorValue::type_error("not a stream"));
    };
    let mut all = Vec::new();
    while let Some(chunk) = stream.next().await {
        match chunk? {
            Value::Bytes(bytes) => all.extend_from_slice(&bytes),
            Value::String(text) => all.extend_from_slice(text.as_bytes()),
            other => return Err(ErrorValue::type_error(kind(&other))),
        }
    }
    Ok(all.into())
}
