//! How fast calls and byte streams run between two sessions over a Unix socket.
//!
//! `cargo run --release -p capnweb --example throughput`
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use capnweb::{CallFuture, Limits, Path, ReadableStream, Session, Target, Value, display_path, ws};
use futures_util::FutureExt as _;

const MIB: usize = 1024 * 1024;
const TOTAL: usize = 256 * MIB;

/// `read(chunk bytes)` gives a stream, `ping` nothing.
struct Main;

impl Target for Main {
    fn call(self: Arc<Self>, path: Path, args: Vec<Value>) -> CallFuture {
        if display_path(&path) != "read" {
            return async { Ok(Value::Undefined) }.boxed();
        }
        let chunk = Bytes::from(vec![
            7_u8;
            args.first().and_then(Value::as_u64).unwrap_or(65_536)
                as usize
        ]);
        let (writer, stream) = ReadableStream::channel(4 * chunk.len());
        tokio::spawn(async move {
            for _ in 0..TOTAL / chunk.len() {
                if writer.write(chunk.clone()).await.is_err() {
                    return;
                }
            }
            writer.close();
        });
        async { Ok(stream.into()) }.boxed()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (near, far) = tokio::net::UnixStream::pair()?;
    let limits = Limits::default();
    let (accepted, connected) = tokio::join!(
        ws::accept(near, &limits),
        ws::client(far, "ws://bench/rpc", &limits)
    );
    let (_server, driver) = Session::start(accepted?, Some(Arc::new(Main)), limits);
    tokio::spawn(driver);
    let (client, driver) = Session::start(connected?, None, limits);
    tokio::spawn(driver);

    let start = Instant::now();
    for _ in 0..20_000 {
        client.main().call("ping", vec![]).await?;
    }
    println!(
        "one call after another: {:.1} µs each",
        start.elapsed().as_secs_f64() * 50.0
    );

    let start = Instant::now();
    let calls = (0..10_000).map(|_| client.main().call("ping", vec![]).into_future());
    futures_util::future::try_join_all(calls).await?;
    println!(
        "10,000 calls at once: {:.1} µs each",
        start.elapsed().as_secs_f64() * 100.0
    );

    for chunk in [4 * 1024, 64 * 1024, 256 * 1024, MIB] {
        let start = Instant::now();
        let Value::Readable(mut stream) = client
            .main()
            .call("read", vec![(chunk as f64).into()])
            .await?
        else {
            return Err("no stream".into());
        };
        let mut bytes = 0;
        while let Some(part) = stream.next().await {
            bytes += part?.as_bytes().map_or(0, Bytes::len);
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{} MiB in chunks of {} KiB: {:.0} MiB/s",
            bytes / MIB,
            chunk / 1024,
            (bytes / MIB) as f64 / seconds
        );
    }
    Ok(())
}
