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
pub(crate) struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn connect(main: Option<Arc<dyn Target>>) -> (Node, Connection) {
    connect_to("capnweb", main, Limits::default()).await
}

pub(crate) async fn start(library: &'static str) -> (Node, u16) {
    let start = tokio::task::spawn_blocking(move || {
        let mut child = node("capnweb-server.mjs")
            .arg(library)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        (Node(child), line.trim().parse::<u16>().unwrap())
    });
    within(start).await.unwrap()
}

async fn connect_to(
    library: &'static str,
    main: Option<Arc<dyn Target>>,
    limits: Limits,
) -> (Node, Connection) {
    let (node, port) = start(library).await;
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
    everything("capnweb").await;
}

#[tokio::test]
async fn our_client_gets_along_with_the_official_server_of_version_0_8() {
    everything("capnweb-08").await;
}

async fn everything(library: &'static str) {
    let greet =
        methods(|_, args| async move { Ok(format!("hello {}", args[0].as_str().unwrap()).into()) });
    let (_node, connection) = connect_to(library, greet, Limits::default()).await;
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
    streams("capnweb").await;
}

#[tokio::test]
async fn streams_run_between_our_client_and_the_official_server_of_version_0_8() {
    streams("capnweb-08").await;
}

async fn streams(library: &'static str) {
    let (_node, connection) = connect_to(library, None, Limits::default()).await;
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

#[tokio::test]
async fn the_official_servers_apply_our_maps() {
    for library in ["capnweb", "capnweb-08"] {
        let (_node, connection) = connect_to(library, None, Limits::default()).await;
        let api = connection.main();
        let mapped = api.call("list", vec![3.into()]).stub().map("", |map| {
            let sum = map.call(&api, "sum", vec![map.input().into_promise(), 10.into()]);
            Value::Object([("sum", sum.into_promise())].into_iter().collect())
        });
        let expected = serde_json::json!([{"sum": 10}, {"sum": 11}, {"sum": 12}]);
        assert_eq!(within(mapped).await.unwrap().to_json().unwrap(), expected);
        let given = Value::from_json(serde_json::json!([[1, 2], [3]]));
        let lists = api.call("echo", vec![given]).stub();
        let nested = lists.map("", |map| {
            let list = map.input();
            map.map(&list, "", |inner| {
                inner
                    .call(&api, "sum", vec![inner.input().into_promise(), 1.into()])
                    .into_promise()
            })
            .into_promise()
        });
        let expected = serde_json::json!([[2, 3], [4]]);
        assert_eq!(within(nested).await.unwrap().to_json().unwrap(), expected);
        let counters = api.call("counters", vec![2.into()]).stub();
        let added = counters.map("", |map| {
            map.call(&map.input(), "add", vec![5.into()]).into_promise()
        });
        assert_eq!(
            within(added).await.unwrap().to_json().unwrap(),
            serde_json::json!([5, 6])
        );
        drop((counters, lists));
        eventually("tables are back to their base", || {
            let stats = connection.stats();
            (stats.imports, stats.exports) == (1, 1)
        })
        .await;
    }
}

#[tokio::test]
async fn blobs_requests_and_responses_reach_the_official_servers() {
    for library in ["capnweb", "capnweb-08"] {
        let (_node, connection) = connect_to(library, None, Limits::default()).await;
        let api = connection.main();
        let describe = |value: Value| {
            let call = api.call("describe", vec![value]);
            async move { within(call).await.unwrap().as_str().unwrap().to_owned() }
        };
        let (writer, content) = ReadableStream::channel(1024);
        writer.write(b"content".to_vec()).await.unwrap();
        writer.close();
        let media_type = "text/x-test".to_owned();
        let blob = Value::Blob(Box::new(capnweb::Blob {
            media_type,
            content,
        }));
        assert_eq!(describe(blob).await, "text/x-test content");
        let headers = vec![("x-a".to_owned(), "1".to_owned())];
        let request = capnweb::Request {
            url: "https://example.com/p".into(),
            method: "POST".into(),
            headers: headers.clone(),
            body: "data".into(),
            init: Object::new(),
        };
        let request = describe(Value::Request(Box::new(request))).await;
        assert_eq!(request, "POST https://example.com/p 1 data");
        let response = capnweb::Response {
            status: 404,
            status_text: "Gone".into(),
            headers: headers.clone(),
            body: b"body".to_vec().into(),
            init: Object::new(),
        };
        assert_eq!(
            describe(Value::Response(Box::new(response))).await,
            "404 1 body"
        );
        assert_eq!(describe(Value::Headers(headers)).await, "[[\"x-a\",\"1\"]]");
        let Value::Blob(blob) = within(api.call("blob", vec!["text".into()])).await.unwrap() else {
            panic!("no blob")
        };
        assert_eq!(blob.media_type, "text/x-test");
        let mut content = blob.content;
        let first = within(content.next()).await.unwrap().unwrap();
        assert_eq!(first.as_bytes().unwrap().as_ref(), b"text");
    }
}

#[tokio::test]
async fn types_are_kept_where_the_peer_is_known_to_have_them() {
    let typed =
        || capnweb::TypedArray::new(capnweb::ArrayKind::Uint16Array, vec![1, 0, 2, 0]).unwrap();
    let url = || Value::Url("https://example.com/".into());
    let mut modern = Limits::default();
    modern.dialect = capnweb::Dialect::V0_11;
    let (_node, connection) = connect_to("capnweb", None, modern).await;
    let api = connection.main();
    let described = within(api.call("describe", vec![typed().into()]))
        .await
        .unwrap();
    assert_eq!(described.as_str(), Some("Uint16Array 1,2"));
    let described = within(api.call("describe", vec![url()])).await.unwrap();
    assert_eq!(described.as_str(), Some("URL https://example.com/"));
    let back = within(api.call("echo", vec![typed().into()]))
        .await
        .unwrap();
    assert!(matches!(back, Value::TypedArray(array) if *array == typed()));
    assert!(matches!(
        within(api.call("echo", vec![url()])).await,
        Ok(Value::Url(_))
    ));
    // Without that knowledge they are what every version reads.
    for library in ["capnweb", "capnweb-08"] {
        let (_node, connection) = connect_to(library, None, Limits::default()).await;
        let api = connection.main();
        let described = within(api.call("describe", vec![url()])).await.unwrap();
        assert_eq!(described.as_str(), Some("String https://example.com/"));
        let back = within(api.call("echo", vec![typed().into()]))
            .await
            .unwrap();
        assert_eq!(back.as_bytes().unwrap().as_ref(), [1, 0, 2, 0]);
    }
}
