//! The official JavaScript package as client and as server.
//!
//! Needs node and `npm ci` in `tests/interop`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use capnweb::{
    CallFuture, Connection, ErrorValue, Limits, Object, Path, ReadableStream, Scoped, Session,
    Stub, Target, Value, WeakConnection, WritableStream, codes, display_path, ws,
};
use futures_util::FutureExt as _;
use support::{Methods, eventually, methods, within};
use tokio::net::{TcpListener, TcpStream};

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop");
    assert!(
        folder.join("node_modules/capnweb").is_dir(),
        "the JavaScript packages are missing: run `npm ci` in tests/interop"
    );
    folder
}

fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(script).current_dir(folder());
    command
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 % 251) as u8).collect()
}

fn file_not_found() -> ErrorValue {
    let mut details = Object::new();
    details.insert("path", "/x");
    ErrorValue::coded("FILE_NOT_FOUND", "File not found: /x").with_prop("details", details)
}

fn readable(args: &mut Vec<Value>) -> ReadableStream {
    match args.remove(0) {
        Value::Readable(stream) => stream,
        other => panic!("not a stream: {other:?}"),
    }
}

/// What `capnweb-client.mjs` calls.
struct Server {
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
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/rpc", listener.local_addr().unwrap());
    let serve = tokio::spawn(async move {
        loop {
            let (io, _) = listener.accept().await.unwrap();
            let limits = Limits::default();
            let socket = ws::accept(io, &limits).await.unwrap();
            let server = Arc::new(Server {
                session: std::sync::OnceLock::new(),
                ended: Arc::new(tokio::sync::Semaphore::new(0)),
            });
            let (connection, driver) = Session::start(socket, Some(server.clone()), limits);
            let _ = server.session.set(connection.downgrade());
            tokio::spawn(async move {
                driver.await;
                drop(connection);
            });
        }
    });
    let run =
        tokio::task::spawn_blocking(move || node("capnweb-client.mjs").arg(url).output().unwrap());
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

/// The official server; ends when this is dropped.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn connect(main: Option<Arc<dyn Target>>) -> (Node, Connection) {
    let start = tokio::task::spawn_blocking(|| {
        let mut child = node("capnweb-server.mjs")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        (Node(child), line.trim().parse::<u16>().unwrap())
    });
    let (node, port) = within(start).await.unwrap();
    let limits = Limits::default();
    let io = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let socket = ws::client(io, &format!("ws://127.0.0.1:{port}/"), &limits)
        .await
        .unwrap();
    let (connection, driver) = Session::start(socket, main, limits);
    tokio::spawn(driver);
    (node, connection)
}

#[tokio::test]
async fn our_client_gets_along_with_the_official_server() {
    let greet =
        methods(|_, args| async move { Ok(format!("hello {}", args[0].as_str().unwrap()).into()) });
    let (_node, connection) = connect(greet).await;
    let api = connection.main();

    // Values.
    let mut object = Object::new();
    object.insert(
        "list",
        vec![Value::Null, Value::Bool(true), Value::Array(vec![])],
    );
    object.insert("text", "é 😀 \" \\ \n");
    let sent = Value::Object(object).to_json().unwrap();
    let echoed = within(api.call("echo", vec![Value::from_json(sent.clone())]))
        .await
        .unwrap();
    assert_eq!(echoed.to_json().unwrap(), sent);
    for length in [0, 1, 112_640, 1 << 20, 16 << 20] {
        let echoed = within(api.call("echo", vec![pattern(length).into()]))
            .await
            .unwrap();
        assert!(
            echoed.as_bytes().unwrap() == &pattern(length),
            "{length} bytes"
        );
    }
    let kinds = [
        (Value::Undefined, "[object Undefined]"),
        (Value::Date(1.0), "[object Date]"),
        (Value::BigInt(7_i64.into()), "[object BigInt]"),
        (
            Value::Headers(vec![("a".into(), "b".into())]),
            "[object Headers]",
        ),
        (ErrorValue::type_error("x").into(), "[object Error]"),
    ];
    for (value, kind) in kinds {
        let name = within(api.call("kind", vec![value])).await.unwrap();
        assert_eq!(name.as_str(), Some(kind));
    }

    // Errors.
    let error = within(api.call("fail", vec![])).await.unwrap_err();
    assert_eq!(
        (error.message.as_str(), error.code()),
        ("File not found: /x", Some("FILE_NOT_FOUND"))
    );

    // Pipelining, on results and as arguments.
    let counter = api.call("counter", vec![10.into()]).stub();
    let (first, second) = (
        counter.call("add", vec![1.into()]),
        counter.call("add", vec![2.into()]),
    );
    let sum = api.call(
        "sum",
        vec![Value::Promise(first.stub()), Value::Promise(second.stub())],
    );
    assert_eq!(within(sum).await.unwrap().as_f64(), Some(24.0));
    assert_eq!(
        within(counter.get("value")).await.unwrap().as_f64(),
        Some(13.0)
    );
    let doubled = api
        .call("tree", vec![])
        .stub()
        .call("inner.double", vec![4.into()]);
    assert_eq!(within(doubled).await.unwrap().as_f64(), Some(8.0));

    // Functions, both ways.
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let callback = Stub::function(move |args| {
        log.lock().unwrap().push(args[0].as_u64().unwrap());
        async { Ok(Value::Undefined) }
    });
    within(api.call("each", vec![3.into(), callback.into()]))
        .await
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2]);
    let greeting = within(api.call("greetBack", vec!["Ada".into()]))
        .await
        .unwrap();
    assert_eq!(greeting.as_str(), Some("hello Ada"));
    let group = Scoped::stub(
        Arc::new(Methods(|path, _| async move { Ok(Value::from(path)) })),
        "group",
    );
    let back = within(api.call("echo", vec![group.into()])).await.unwrap();
    let name = within(back.as_stub().unwrap().call("method", vec![]))
        .await
        .unwrap();
    assert_eq!(name.as_str(), Some("group.method"));
    drop((first, second, back, counter));

    eventually("tables are back to their base", || {
        let stats = connection.stats();
        (stats.imports, stats.exports) == (1, 1)
    })
    .await;
}

#[tokio::test]
async fn streams_run_between_our_client_and_the_official_server() {
    let (_node, connection) = connect(None).await;
    let api = connection.main();

    // Read.
    let Value::Readable(mut stream) = within(api.call("read", vec![1_000_000.into()]))
        .await
        .unwrap()
    else {
        panic!("not a stream")
    };
    let mut all = Vec::new();
    while let Some(chunk) = within(stream.next()).await {
        all.extend_from_slice(chunk.unwrap().as_bytes().unwrap());
    }
    assert!(all == pattern(1_000_000));
    drop(stream);

    // Write.
    let (writer, stream) = ReadableStream::channel(64 * 1024);
    let call = api.call("collect", vec![stream.into()]);
    for part in pattern(1_000_000).chunks(50_000) {
        within(writer.write(part.to_vec())).await.unwrap();
    }
    writer.close();
    assert!(within(call).await.unwrap().as_bytes().unwrap() == &pattern(1_000_000));

    // Their reader goes away: our producer learns of it.
    let (writer, stream) = ReadableStream::channel(64 * 1024);
    let call = api.call("readOne", vec![stream.into()]);
    let write = async { while writer.write(vec![1_u8; 1000]).await.is_ok() {} };
    within(write).await;
    assert_eq!(within(call).await.unwrap().as_f64(), Some(1000.0));

    // Our reader goes away: their producer learns of it.
    let endless = within(api.call("endless", vec![])).await.unwrap();
    drop(endless);
    within(api.call("canceled", vec![])).await.unwrap();

    // Sinks.
    let (sink, mut stream) = WritableStream::channel(1024);
    let fill = tokio::spawn(api.call("fill", vec![sink.into(), 20.into()]).into_future());
    for number in 0..20 {
        assert_eq!(
            within(stream.next()).await.unwrap().unwrap().as_f64(),
            Some(f64::from(number))
        );
    }
    assert!(within(stream.next()).await.is_none());
    within(fill).await.unwrap().unwrap();
    let Value::Writable(mut sink) = within(api.call("sink", vec![])).await.unwrap() else {
        panic!("not a sink")
    };
    for number in 0..5 {
        within(sink.write(number)).await.unwrap();
    }
    within(sink.close()).await.unwrap();
    let written = within(api.get("written")).await.unwrap();
    assert_eq!(written.as_array().unwrap().len(), 5);

    eventually("tables are back to their base", || {
        let stats = connection.stats();
        (stats.imports, stats.exports) == (1, 1)
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_official_server_is_told_as_its_own_client_tells_it() {
    let (node, connection) = connect(None).await;
    let call = connection.main().call("canceled", vec![]);
    let ping = within(connection.main().call("echo", vec![1.into()])).await;
    assert!(ping.is_ok());
    drop(node);
    let error = within(call).await.unwrap_err();
    assert!(
        error.message.starts_with("Peer closed WebSocket: ")
            || error.message == "WebSocket connection failed.",
        "{error}"
    );
    assert_eq!(error.code(), Some(codes::DISCONNECTED));
}
