//! Files over RPC.

use crate::sandbox::{Sandbox, drain, events, object, readable};
use capnweb::{ReadableStream, Value};
use std::os::unix::fs::PermissionsExt;

const BIG: usize = 256 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_content_is_written_and_read_back() {
    let sandbox = Sandbox::start().await;
    let base64 = object([("encoding", "base64".into())]);
    let written = sandbox.call(
        "sandbox.writeFile",
        vec!["b".into(), "AP/+gA==".into(), base64.into()],
    );
    let written = written.await.unwrap();
    assert_eq!(written.get("bytesWritten").and_then(Value::as_i64), Some(4));
    assert_eq!(sandbox.exec("od -An -tx1 b").await.out, " 00 ff fe 80\n");
    let read = sandbox
        .call("sandbox.readFile", vec!["b".into()])
        .await
        .unwrap();
    assert_eq!(
        read.get("content").and_then(Value::as_str),
        Some("AP/+gA==")
    );
    assert_eq!(read.get("isBinary").and_then(Value::as_bool), Some(true));
    for size in [0, 1, 112_640, 1 << 20, 16 << 20] {
        sandbox
            .call(
                "sandbox.writeFile",
                vec!["bytes".into(), vec![7; size].into()],
            )
            .await
            .unwrap();
        assert_eq!(
            sandbox.exec("stat -c %s bytes").await.out,
            format!("{size}\n")
        );
    }
    let too_much = vec!["bytes".into(), vec![7; (32 << 20) + 1].into()];
    let error = sandbox
        .call("sandbox.writeFile", too_much)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("FILE_TOO_LARGE"));
    let bad = vec![
        "b".into(),
        "A A".into(),
        object([("encoding", "base64".into())]).into(),
    ];
    let error = sandbox.call("sandbox.writeFile", bad).await.unwrap_err();
    assert_eq!(error.code(), Some("VALIDATION_FAILED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_domain_has_the_official_shapes() {
    let sandbox = Sandbox::start().await;
    let keys = |value: &Value| -> Vec<String> {
        let mut keys: Vec<_> = value
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, _)| key.to_owned())
            .collect();
        keys.sort();
        keys
    };
    let call = |method: &str, args| sandbox.user.call(format!("files.{method}"), args);
    let none = || Value::Undefined;
    let base64 = object([("encoding", "base64".into())]);
    let written = call(
        "writeFile",
        vec!["f".into(), "YWI=".into(), none(), base64.into()],
    )
    .await
    .unwrap();
    assert_eq!(
        written.get("bytesWritten").and_then(Value::as_i64),
        Some(4),
        "the official count"
    );
    assert_eq!(
        keys(&written),
        ["bytesWritten", "path", "success", "timestamp"]
    );
    let read = call("readFile", vec!["f".into(), none(), Value::Undefined])
        .await
        .unwrap();
    assert_eq!(
        keys(&read),
        [
            "content",
            "encoding",
            "isBinary",
            "mimeType",
            "path",
            "size",
            "success",
            "timestamp"
        ]
    );
    let raw = call(
        "readFile",
        vec![
            "f".into(),
            none(),
            object([("encoding", "none".into())]).into(),
        ],
    );
    let Value::Object(mut raw) = raw.await.unwrap() else {
        panic!("no object")
    };
    assert_eq!(drain(raw.remove("content").unwrap()).await, b"ab");
    let renamed = call("renameFile", vec!["f".into(), "g".into(), none()])
        .await
        .unwrap();
    assert_eq!(
        keys(&renamed),
        ["newPath", "oldPath", "path", "success", "timestamp"]
    );
    let moved = call("moveFile", vec!["g".into(), "h".into(), none()])
        .await
        .unwrap();
    assert_eq!(keys(&moved), ["newPath", "path", "success", "timestamp"]);
    let made = call(
        "mkdir",
        vec![
            "d/e".into(),
            none(),
            object([("recursive", true.into())]).into(),
        ],
    );
    assert_eq!(
        keys(&made.await.unwrap()),
        ["path", "recursive", "success", "timestamp"]
    );
    let listed = call("listFiles", vec![".".into(), none()]).await.unwrap();
    assert_eq!(
        keys(&listed),
        ["count", "files", "path", "success", "timestamp"]
    );
    let entry = &listed.get("files").unwrap().as_array().unwrap()[1];
    assert_eq!(
        keys(entry),
        [
            "absolutePath",
            "mode",
            "modifiedAt",
            "name",
            "permissions",
            "relativePath",
            "size",
            "type"
        ]
    );
    let exists = call("exists", vec!["h".into(), none()]).await.unwrap();
    assert_eq!(exists.get("exists").and_then(Value::as_bool), Some(true));
    assert_eq!(
        keys(&call("deleteFile", vec!["h".into(), none()]).await.unwrap()),
        ["path", "success", "timestamp"]
    );
    let error = call("deleteFile", vec!["h".into(), none()])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("FILE_NOT_FOUND"));
    let operation = error.details().and_then(|details| details.get("operation"));
    assert_eq!(operation.and_then(Value::as_str), Some("file.delete"));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_nowhere_but_inside() {
    let sandbox = Sandbox::start().await;
    sandbox
        .exec("ln -s /etc/no-such-mark leak; ln -s new dang; ln -s / up")
        .await;
    let error = sandbox
        .call("sandbox.readFile", vec!["leak".into()])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("FILE_NOT_FOUND"));
    sandbox
        .call("sandbox.writeFile", vec!["dang".into(), "x".into()])
        .await
        .unwrap();
    assert_eq!(
        sandbox.exec("cat new; test -L dang && echo link").await.out,
        "xlink\n"
    );
    assert!(
        sandbox
            .call("sandbox.readFile", vec!["up/etc/passwd".into()])
            .await
            .is_ok()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_of_a_file() {
    let sandbox = Sandbox::start().await;
    let text = "€uro\n".repeat(40_000);
    sandbox
        .call(
            "sandbox.writeFile",
            vec!["t.txt".into(), text.clone().into()],
        )
        .await
        .unwrap();
    let stream = sandbox
        .call("sandbox.readFileStream", vec!["t.txt".into()])
        .await
        .unwrap();
    let told = events(&drain(stream).await);
    assert_eq!(told[0]["mimeType"], "text/plain");
    assert_eq!(told[0]["isBinary"], false);
    let data: String = told
        .iter()
        .filter(|e| e["type"] == "chunk")
        .map(|e| e["data"].as_str().unwrap())
        .collect();
    assert_eq!(data, text);
    assert_eq!(told.last().unwrap()["bytesRead"], text.len());
    let stream = sandbox
        .call("files.readFileStream", vec!["missing".into()])
        .await
        .unwrap();
    let told = events(&drain(stream).await);
    assert_eq!(
        (told.len(), told[0]["error"].as_str()),
        (1, Some("File not found: missing"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn large_files_stream_both_ways_in_bounded_memory() {
    let sandbox = Sandbox::start().await;
    let make = format!("head -c {BIG} /dev/urandom > big; sha256sum < big");
    let sum = sandbox.exec(&make).await.out;
    let before = sandbox.memory();
    let none = object([("encoding", "none".into())]);
    let Value::Object(mut read) = sandbox
        .call("sandbox.readFile", vec!["big".into(), none.into()])
        .await
        .unwrap()
    else {
        panic!("no object")
    };
    let mut down = readable(read.remove("content").unwrap());
    let (up, stream) = ReadableStream::channel(1 << 20);
    let write = sandbox
        .user
        .call("sandbox.writeFile", vec!["copy".into(), stream.into()]);
    let mut peak = 0;
    let copy = async {
        let mut chunks = 0_u32;
        while let Some(chunk) = down.next().await {
            up.write(chunk.unwrap().as_bytes().unwrap().clone())
                .await
                .unwrap();
            chunks += 1;
            if chunks.is_multiple_of(64) {
                peak = peak.max(sandbox.memory());
            }
        }
        up.close();
    };
    let ((), written) = tokio::join!(copy, async { write.await });
    let written = written.unwrap();
    assert_eq!(
        written.get("bytesWritten").and_then(Value::as_i64),
        i64::try_from(BIG).ok()
    );
    assert_eq!(sandbox.exec("sha256sum < copy").await.out, sum);
    assert!(peak < before + (64 << 20), "grew from {before} to {peak}");
    sandbox.exec("rm big copy").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_read_closes_the_file_and_a_broken_write_leaves_no_trace() {
    let sandbox = Sandbox::start().await;
    sandbox
        .exec("truncate -s 256M big; echo old > kept; chmod 600 kept")
        .await;
    let none = object([("encoding", "none".into())]);
    let Value::Object(mut read) = sandbox
        .call("sandbox.readFile", vec!["big".into(), none.into()])
        .await
        .unwrap()
    else {
        panic!("no object")
    };
    let mut stream = readable(read.remove("content").unwrap());
    stream.next().await.unwrap().unwrap();
    assert_eq!(sandbox.open_on(&sandbox.path("big")), 1);
    drop(stream);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while sandbox.open_on(&sandbox.path("big")) > 0 {
        assert!(std::time::Instant::now() < deadline, "the file stays open");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }

    let (up, stream) = ReadableStream::channel(1 << 20);
    let write = sandbox
        .user
        .call("sandbox.writeFile", vec!["kept".into(), stream.into()]);
    up.write(b"half".to_vec()).await.unwrap();
    drop(up);
    assert!(write.await.is_err());
    assert_eq!(
        sandbox.exec("cat kept; ls -A | sort").await.out,
        "old\nbig\nkept\n"
    );
    sandbox
        .call("sandbox.writeFile", vec!["kept".into(), "new".into()])
        .await
        .unwrap();
    let mode = std::fs::metadata(sandbox.path("kept"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
