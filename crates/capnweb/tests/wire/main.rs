//! The exact messages, and what a hostile peer can do with them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod breaches;
mod messages;
mod oddities;

use std::sync::Arc;

use capnweb::{ErrorValue, Limits, ReadableStream, Stub, Target, Value};
use support::{End, Raw, methods, raw};

/// `echo` gives its first argument back, `wait` never ends, the rest is named.
fn main() -> Option<Arc<dyn Target>> {
    methods(|path, mut args| async move {
        match path.as_str() {
            "echo" => Ok(if args.is_empty() {
                Value::Undefined
            } else {
                args.remove(0)
            }),
            "wait" => std::future::pending().await,
            "hello" => Ok("world".into()),
            "big" => Ok(vec![0_u8; 30 << 20].into()),
            "stub" => Ok(Stub::function(|_| async { Ok("called".into()) }).into()),
            "read" => {
                let (writer, stream) = ReadableStream::channel(1024);
                tokio::spawn(async move {
                    writer.write(b"ab".to_vec()).await?;
                    writer.close();
                    Ok::<_, capnweb::Canceled>(())
                });
                Ok(stream.into())
            }
            "drain" => {
                let Some(Value::Readable(mut stream)) = args.pop() else {
                    return Err(ErrorValue::type_error("no stream"));
                };
                let mut bytes = 0;
                while let Some(chunk) = stream.next().await {
                    bytes += chunk?.as_bytes().map_or(0, |bytes| bytes.len());
                }
                Ok(Value::Number(bytes as f64))
            }
            "call" => {
                args.remove(0)
                    .as_stub()
                    .unwrap()
                    .call((), vec![1.into()])
                    .await
            }
            _ => Err(capnweb::not_a_function(&[capnweb::Key::Name(path)])),
        }
    })
}

async fn start() -> (End, Raw) {
    raw(main(), Limits::default()).await
}
