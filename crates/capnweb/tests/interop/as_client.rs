//! Our client on the official server.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;

use crate::support::{Methods, eventually, methods, within};
use capnweb::{
    Connection, ErrorValue, Limits, Object, ReadableStream, Scoped, Session, Stub, Target, Value,
    WritableStream, codes, ws,
};
use tokio::net::TcpStream;

use crate::{node, pattern};

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
