//! Streams between two sessions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use capnweb::{ErrorValue, ReadableStream, Value, WritableStream, codes};
use support::{eventually, methods, pair, within};

fn into_readable(value: Value) -> ReadableStream {
    match value {
        Value::Readable(stream) => stream,
        other => panic!("not a stream: {other:?}"),
    }
}

async fn read_all(stream: &mut ReadableStream) -> Result<Vec<u8>, ErrorValue> {
    let mut all = Vec::new();
    while let Some(chunk) = within(stream.next()).await {
        all.extend_from_slice(chunk?.as_bytes().unwrap());
    }
    Ok(all)
}

fn pattern(length: usize) -> Bytes {
    (0..length).map(|index| (index * 31 % 251) as u8).collect()
}

#[tokio::test]
async fn a_result_stream_delivers_every_byte_and_leaves_nothing_behind() {
    let data = pattern(3_000_000);
    let sent = data.clone();
    let main = methods(move |_, _| {
        let (writer, stream) = ReadableStream::channel(64 * 1024);
        let mut data = sent.clone();
        tokio::spawn(async move {
            while !data.is_empty() {
                let piece = data.split_to(data.len().min(70_001));
                writer.write(piece).await?;
            }
            writer.close();
            Ok::<_, capnweb::Canceled>(())
        });
        async { Ok(stream.into()) }
    });
    let (server, client) = pair(main, None).await;
    let mut stream = into_readable(within(client.main().call("read", vec![])).await.unwrap());
    assert_eq!(read_all(&mut stream).await.unwrap(), data);
    eventually("tables are back to their base", || {
        let (near, far) = (server.connection.stats(), client.connection.stats());
        (
            near.imports,
            near.exports,
            far.imports,
            far.exports,
            far.stream_bytes,
        ) == (1, 1, 1, 1, 0)
    })
    .await;
}

#[tokio::test]
async fn an_argument_stream_is_read_by_the_callee() {
    let main = methods(|_, mut args| async move {
        let mut stream = into_readable(args.remove(0));
        let all = read_all(&mut stream).await?;
        Ok(Value::Number(all.len() as f64))
    });
    let (server, client) = pair(main, None).await;
    let (writer, stream) = ReadableStream::channel(1024);
    let call = client.main().call("write", vec![stream.into()]);
    for _ in 0..100 {
        within(writer.write(pattern(10_000))).await.unwrap();
    }
    writer.close();
    assert_eq!(within(call).await.unwrap().as_f64(), Some(1_000_000.0));
    eventually("tables are back to their base", || {
        let (near, far) = (server.connection.stats(), client.connection.stats());
        (near.imports, near.exports, far.imports, far.exports) == (1, 1, 1, 1)
    })
    .await;
}

#[tokio::test]
async fn an_unread_stream_holds_its_producer_back() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = written.clone();
    let main = methods(move |path, _| {
        let count = count.clone();
        async move {
            if path == "ping" {
                return Ok("pong".into());
            }
            let (writer, stream) = ReadableStream::channel(64 * 1024);
            tokio::spawn(async move {
                let chunk = pattern(64 * 1024);
                while writer.write(chunk.clone()).await.is_ok() {
                    count.fetch_add(chunk.len(), Ordering::SeqCst);
                }
            });
            Ok(stream.into())
        }
    });
    let (server, client) = pair(main, None).await;
    let mut stream = into_readable(within(client.main().call("read", vec![])).await.unwrap());
    // The producer runs into the window and stops there.
    let mut last = usize::MAX;
    while last != written.load(Ordering::SeqCst) || last == 0 {
        last = written.load(Ordering::SeqCst);
        for _ in 0..20 {
            within(client.main().call("ping", vec![])).await.unwrap();
        }
    }
    assert!(
        last < 2 * 1024 * 1024,
        "{last} bytes were written though nobody reads"
    );
    assert!(client.connection.stats().stream_bytes < 1024 * 1024);
    assert!(server.connection.stats().queue_bytes < 1024 * 1024);
    // It goes on as soon as somebody reads.
    for _ in 0..200 {
        within(stream.next()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_canceled_stream_tells_its_producer_at_once() {
    let (told, producer) = tokio::sync::oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let main = methods(move |_, _| {
        let told = told.lock().unwrap().take().unwrap();
        let (writer, stream) = ReadableStream::channel(1024);
        tokio::spawn(async move {
            writer.write("first").await.unwrap();
            // Silent from here on, until the reader goes away.
            let _ = told.send(writer.closed().await);
        });
        async { Ok(stream.into()) }
    });
    let (server, client) = pair(main, None).await;
    let mut stream = into_readable(within(client.main().call("read", vec![])).await.unwrap());
    assert_eq!(
        within(stream.next()).await.unwrap().unwrap().as_str(),
        Some("first")
    );
    drop(stream);
    let reason = within(producer).await.unwrap();
    assert_eq!(reason.0.code(), Some(codes::STREAM_CLOSED));
    eventually("the pipe is released", || {
        server.connection.stats().imports == 1 && client.connection.stats().exports == 1
    })
    .await;
}

#[tokio::test]
async fn an_aborted_stream_gives_its_error() {
    let main = methods(|_, _| {
        let (writer, stream) = ReadableStream::channel(1024);
        writer.abort(ErrorValue::coded("DISK_FULL", "no room"));
        async { Ok(stream.into()) }
    });
    let (_server, client) = pair(main, None).await;
    let mut stream = into_readable(within(client.main().call("read", vec![])).await.unwrap());
    let error = within(stream.next()).await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some("DISK_FULL"));
    assert!(within(stream.next()).await.is_none());
}

#[tokio::test]
async fn a_producer_that_vanishes_is_an_error_to_the_reader() {
    let main = methods(|_, _| {
        let (writer, stream) = ReadableStream::channel(1024);
        drop(writer);
        async { Ok(stream.into()) }
    });
    let (_server, client) = pair(main, None).await;
    let mut stream = into_readable(within(client.main().call("read", vec![])).await.unwrap());
    assert!(within(stream.next()).await.unwrap().is_err());
}

#[tokio::test]
async fn a_session_that_ends_is_an_error_to_the_reader_and_the_producer() {
    let (told, producer) = tokio::sync::oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let main = methods(move |_, _| {
        let told = told.lock().unwrap().take().unwrap();
        let (writer, stream) = ReadableStream::channel(1024);
        tokio::spawn(async move {
            let _ = told.send(writer.closed().await);
        });
        async { Ok(stream.into()) }
    });
    let (server, client) = pair(main, None).await;
    let mut stream = into_readable(within(client.main().call("read", vec![])).await.unwrap());
    server.driver.abort();
    assert!(within(stream.next()).await.unwrap().is_err());
    within(producer).await.unwrap();
}

#[tokio::test]
async fn a_sink_given_to_the_peer_is_written_by_it() {
    let main = methods(|_, mut args| async move {
        let Value::Writable(mut sink) = args.remove(0) else {
            panic!("not a sink")
        };
        for number in 0..50 {
            sink.write(number).await?;
        }
        sink.close().await?;
        Ok(Value::Undefined)
    });
    let (server, client) = pair(main, None).await;
    let (sink, mut stream) = WritableStream::channel(1024);
    let call = tokio::spawn(client.main().call("fill", vec![sink.into()]).into_future());
    for number in 0..50 {
        assert_eq!(
            within(stream.next()).await.unwrap().unwrap().as_f64(),
            Some(f64::from(number))
        );
    }
    assert!(within(stream.next()).await.is_none());
    within(call).await.unwrap().unwrap();
    eventually("tables are back to their base", || {
        let (near, far) = (server.connection.stats(), client.connection.stats());
        (near.imports, near.exports, far.imports, far.exports) == (1, 1, 1, 1)
    })
    .await;
}

#[tokio::test]
async fn a_stream_passes_through_a_middle_man() {
    let data = pattern(2_000_000);
    let sent = data.clone();
    let back = methods(move |_, _| {
        let (writer, stream) = ReadableStream::channel(64 * 1024);
        let data = sent.clone();
        tokio::spawn(async move {
            writer.write(data).await?;
            writer.close();
            Ok::<_, capnweb::Canceled>(())
        });
        async { Ok(stream.into()) }
    });
    let (_back, middle) = pair(back, None).await;
    let behind = middle.main();
    let front = methods(move |path, args| {
        let call = behind.call(path, args);
        async move { call.await }
    });
    let (_front, client) = pair(front, None).await;
    let mut stream = into_readable(within(client.main().call("read", vec![])).await.unwrap());
    assert_eq!(read_all(&mut stream).await.unwrap(), data);
}

#[tokio::test]
async fn a_chunk_can_hold_a_reference() {
    let main = methods(|_, _| {
        let (writer, stream) = ReadableStream::channel(1024);
        tokio::spawn(async move {
            writer
                .write(capnweb::Stub::function(|_| async { Ok("called".into()) }))
                .await?;
            writer.close();
            Ok::<_, capnweb::Canceled>(())
        });
        async { Ok(stream.into()) }
    });
    let (_server, client) = pair(main, None).await;
    let mut stream = into_readable(within(client.main().call("read", vec![])).await.unwrap());
    let chunk = within(stream.next()).await.unwrap().unwrap();
    let answer = within(chunk.as_stub().unwrap().call((), vec![]))
        .await
        .unwrap();
    assert_eq!(answer.as_str(), Some("called"));
}

#[tokio::test]
async fn byte_arrays_of_every_size_arrive() {
    let (_server, client) = pair(
        methods(|_, mut args| async move { Ok(args.remove(0)) }),
        None,
    )
    .await;
    for length in [0, 1, 112_640, 1 << 20, 16 << 20] {
        let data = pattern(length);
        let answer = within(client.main().call("echo", vec![data.clone().into()]))
            .await
            .unwrap();
        assert_eq!(answer.as_bytes(), Some(&data), "{length} bytes");
    }
    let error = within(client.main().call("echo", vec![pattern(24 << 20).into()]))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(codes::MESSAGE_TOO_LARGE));
    assert!(
        within(client.main().call("echo", vec![Value::Null]))
            .await
            .is_ok(),
        "the session lives"
    );
}
