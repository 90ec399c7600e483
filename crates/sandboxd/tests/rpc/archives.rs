//! `readTar` and `writeTar` of the handle.

use crate::sandbox::{Sandbox, drain, object, readable};
use capnweb::{ReadableStream, Value};

/// A stream of these bytes, which ends or breaks off.
fn stream(bytes: Vec<u8>, ends: bool) -> Value {
    let (writer, reader) = ReadableStream::channel(1 << 20);
    tokio::spawn(async move {
        for chunk in bytes.chunks(5000) {
            if writer.write(chunk.to_vec()).await.is_err() {
                return;
            }
        }
        if ends {
            writer.close();
        } else {
            writer.abort(capnweb::ErrorValue::new(
                "Error",
                "the reader of it is gone",
            ));
        }
    });
    Value::Readable(reader)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_comes_out_and_goes_in_as_it_is() {
    let sandbox = Sandbox::start().await;
    sandbox
        .exec("mkdir -p d/sub; printf 'a\\0b' > d/sub/f; ln -s sub d/l; chmod 4750 d/sub/f; touch -d @7 d/sub/f")
        .await;
    let archive = sandbox.call("sandbox.readTar", vec!["d".into()]).await;
    let archive = drain(archive.unwrap()).await;
    let options = object([("place", "as".into())]);
    let copied = sandbox.call(
        "sandbox.writeTar",
        vec!["copy".into(), stream(archive.clone(), true), options.into()],
    );
    let copied = copied.await.unwrap();
    assert_eq!(copied.get("entries").and_then(Value::as_i64), Some(4));
    assert_eq!(copied.get("bytes").and_then(Value::as_i64), Some(3));
    let facts =
        "cd copy; find . -printf '%P %y %m %l\\n' | sort; stat -c %Y sub/f; od -An -c sub/f";
    let there = facts.replace("copy", "d");
    assert_eq!(
        sandbox.exec(facts).await.out,
        sandbox.exec(&there).await.out
    );
    // Into a directory is the default, and it has to be there.
    sandbox.exec("mkdir into").await;
    let into = |path: &str| vec![Value::from(path), stream(archive.clone(), true)];
    sandbox
        .call("sandbox.writeTar", into("into"))
        .await
        .unwrap();
    assert_eq!(sandbox.exec("cat into/d/sub/f | wc -c").await.out, "3\n");
    let error = sandbox.call("sandbox.writeTar", into("none")).await;
    assert_eq!(error.unwrap_err().code(), Some("FILE_NOT_FOUND"));
    let error = sandbox.call("sandbox.readTar", vec!["none".into()]).await;
    assert_eq!(error.unwrap_err().code(), Some("FILE_NOT_FOUND"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_breaks_off_leaves_no_half_file() {
    let sandbox = Sandbox::start().await;
    sandbox
        .exec("head -c 3000000 /dev/urandom > f; echo old > g")
        .await;
    let archive = sandbox.call("sandbox.readTar", vec!["f".into()]).await;
    let archive = drain(archive.unwrap()).await;
    for ends in [true, false] {
        let half = stream(archive[..1_500_000].to_vec(), ends);
        let options = object([("place", "as".into())]);
        let args = vec!["g".into(), half, options.into()];
        let error = sandbox.call("sandbox.writeTar", args).await.unwrap_err();
        assert_eq!(error.code(), Some("FILESYSTEM_ERROR"), "{error}");
        assert_eq!(sandbox.exec("cat g; ls -A").await.out, "old\nf\ng\n");
    }
    let error = sandbox.call(
        "sandbox.writeTar",
        vec![".".into(), stream(vec![7; 5000], true)],
    );
    assert_eq!(error.await.unwrap_err().code(), Some("VALIDATION_FAILED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_ends_the_reading() {
    let sandbox = Sandbox::start().await;
    sandbox.exec("truncate -s 8G big").await;
    let archive = sandbox.call("sandbox.readTar", vec!["big".into()]).await;
    let mut archive = readable(archive.unwrap());
    assert!(archive.next().await.is_some());
    let big = sandbox.path("big");
    assert_eq!(sandbox.open_on(&big), 1);
    drop(archive);
    let begun = std::time::Instant::now();
    while sandbox.open_on(&big) > 0 {
        assert!(begun.elapsed().as_secs() < 60, "the file stays open");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
