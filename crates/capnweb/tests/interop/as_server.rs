//! Our server under the official client.

use std::sync::Arc;
use std::time::Duration;

use capnweb::{
    CallFuture, ErrorValue, Limits, Object, Path, ReadableStream, Session, Stub, Target, Value,
    WeakConnection, display_path, ws,
};
use futures_util::FutureExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::{file_not_found, node, pattern, readable};

/// What `capnweb-client.mjs` calls.
pub struct Server {
    session: std::sync::OnceLock<WeakConnection>,
    ended: Arc<tokio::sync::Semaphore>,
}

struct Counter(std::sync::Mutex<f64>);

impl Target for Counter {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        assert_eq!(display_path(&path), "add");
        let mut value = self.0.lock().unwrap();
        *value += args[0].as_f64().unwrap();
        let value = *value;
        async move { Ok(value.into()) }.boxed()
    }

    fn get(self: Arc<Self>, _: Path) -> CallFuture {
        let value = *self.0.lock().unwrap();
        async move { Ok(value.into()) }.boxed()
    }
}

impl Target for Server {
    fn call(self: Arc<Self>, path: Path, mut args: Vec<Value>) -> CallFuture {
        let path = display_path(&path);
        async move {
            Ok(match path.as_str() {
                "echo" => args.remove(0),
                "count" => Value::Number(args.len() as f64),
                "options" => Value::from_json(args[0].to_json().unwrap()),
                "fail" => return Err(file_not_found()),
                "counter" => Stub::local(Arc::new(Counter(std::sync::Mutex::new(
                    args[0].as_f64().unwrap(),
                ))))
                .into(),
                "counters" => Value::Array(
                    (0..args[0].as_u64().unwrap())
                        .map(|start| {
                            let counter = Counter(std::sync::Mutex::new(start as f64));
                            Stub::local(Arc::new(counter)).into()
                        })
                        .collect(),
                ),
                "sum" => args
                    .iter()
                    .map(|arg| arg.as_f64().unwrap())
                    .sum::<f64>()
                    .into(),
                "tree" => {
                    let double = |args: Vec<Value>| async move {
                        Ok((args[0].as_f64().unwrap() * 2.0).into())
                    };
                    let mut inner = Object::new();
                    inner.insert("list", vec![Value::from("zero"), "one".into()]);
                    inner.insert("double", Stub::function(double));
                    let mut tree = Object::new();
                    tree.insert("inner", inner);
                    tree.into()
                }
                "each" => {
                    let count = args[0].as_u64().unwrap();
                    for number in 0..count {
                        args[1]
                            .as_stub()
                            .unwrap()
                            .call((), vec![(number as f64).into()])
                            .await?;
                    }
                    args.remove(0)
                }
                "greetBack" => {
                    let session = self.session.get().unwrap().upgrade().unwrap();
                    session.main().call("greet", args).await?
                }
                "read" => {
                    let (writer, stream) = ReadableStream::channel(64 * 1024);
                    let mut data = bytes::Bytes::from(pattern(args[0].as_u64().unwrap() as usize));
                    tokio::spawn(async move {
                        while !data.is_empty() {
                            writer.write(data.split_to(data.len().min(30_000))).await?;
                        }
                        writer.close();
                        Ok::<_, capnweb::Canceled>(())
                    });
                    stream.into()
                }
                "readAndFail" => {
                    let (writer, stream) = ReadableStream::channel(1024);
                    tokio::spawn(async move {
                        writer.write("only").await?;
                        // A second one waits until the first was taken.
                        writer.write("only").await?;
                        writer.abort(ErrorValue::coded("DISK_FULL", "no room"));
                        Ok::<_, capnweb::Canceled>(())
                    });
                    stream.into()
                }
                "endless" => {
                    let (writer, stream) = ReadableStream::channel(64 * 1024);
                    let ended = self.ended.clone();
                    tokio::spawn(async move {
                        while writer.write(vec![0_u8; 10_000]).await.is_ok() {}
                        ended.add_permits(1);
                    });
                    stream.into()
                }
                "endlessEnded" => {
                    self.ended.acquire().await.unwrap().forget();
                    true.into()
                }
                "collect" => {
                    let mut stream = readable(&mut args);
                    let mut all = Vec::new();
                    while let Some(chunk) = stream.next().await {
                        all.extend_from_slice(chunk?.as_bytes().unwrap());
                    }
                    all.into()
                }
                "readOne" => {
                    let mut stream = readable(&mut args);
                    let chunk = stream.next().await.unwrap()?;
                    (chunk.as_bytes().unwrap().len() as f64).into()
                }
                "fill" => {
                    let Value::Writable(mut sink) = args.remove(0) else {
                        panic!("not a sink")
                    };
                    for number in 0..args[0].as_u64().unwrap() {
                        sink.write(number as f64).await?;
                    }
                    sink.close().await?;
                    Value::Undefined
                }
                "stats" => {
                    let stats = self.session.get().unwrap().upgrade().unwrap().stats();
                    let pairs = [
                        ("imports", stats.imports as f64),
                        ("exports", stats.exports as f64),
                    ];
                    Value::Object(pairs.into_iter().collect())
                }
                "big" => vec![0_u8; 30 << 20].into(),
                "abort" => {
                    let session = self.session.get().unwrap().upgrade().unwrap();
                    session.abort(ErrorValue::new("Error", "asked to"));
                    Value::Undefined
                }
                other => {
                    return Err(capnweb::not_a_function(&[capnweb::Key::Name(
                        other.to_owned(),
                    )]));
                }
            })
        }
        .boxed()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_gets_along_with_our_server() {
    under("capnweb").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_of_version_0_8_gets_along_with_our_server() {
    under("capnweb-08").await;
}

async fn under(library: &'static str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/rpc", listener.local_addr().unwrap());
    let serve = tokio::spawn(async move {
        loop {
            let (io, _) = listener.accept().await.unwrap();
            tokio::spawn(serve_one(io));
        }
    });
    let run = tokio::task::spawn_blocking(move || {
        let mut command = node("capnweb-client.mjs");
        command.arg(url).arg(library).output().unwrap()
    });
    let output = tokio::time::timeout(Duration::from_secs(120), run)
        .await
        .unwrap()
        .unwrap();
    serve.abort();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A WebSocket, or requests that are batches.
async fn serve_one(io: TcpStream) {
    let mut first = [0; 4];
    if io.peek(&mut first).await.unwrap() == 4 && &first == b"POST" {
        return crate::http::serve(io, server).await;
    }
    let limits = Limits::default();
    let socket = ws::accept(io, &limits).await.unwrap();
    let server = server();
    let (connection, driver) = Session::start(socket, Some(server.clone()), limits);
    let _ = server.session.set(connection.downgrade());
    driver.await;
    drop(connection);
}

fn server() -> Arc<Server> {
    Arc::new(Server {
        session: std::sync::OnceLock::new(),
        ended: Arc::new(tokio::sync::Semaphore::new(0)),
    })
}
