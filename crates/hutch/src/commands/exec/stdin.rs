//! Our standard input as a stream.

use bytes::Bytes;
use capnweb::{ErrorValue, ReadableStream, Value};
use std::io::{ErrorKind, Read};
use tokio::sync::mpsc;

/// Bytes of one chunk.
const CHUNK: usize = 64 << 10;
/// Chunks read ahead of the server.
const AHEAD: usize = 4;
/// Bytes of the stream that may wait for the server.
const WINDOW: usize = 1 << 20;

/// Passes standard input on until its end, or until nobody reads any more.
pub fn stream() -> ReadableStream {
    from_reader(std::io::stdin())
}

fn from_reader(reader: impl Read + Send + 'static) -> ReadableStream {
    let (writer, stream) = ReadableStream::channel(WINDOW);
    let (sender, mut chunks) = mpsc::channel(AHEAD);
    // A thread of its own: a read of a terminal or a silent pipe never ends, and
    // must not keep the process from ending.
    std::thread::spawn(move || read(reader, &sender));
    tokio::spawn(async move {
        loop {
            let chunk = tokio::select! {
                chunk = chunks.recv() => chunk,
                _ = writer.closed() => return,
            };
            let written = match chunk {
                Some(Ok(bytes)) => writer.write(Value::Bytes(bytes)).await,
                Some(Err(error)) => {
                    writer.abort(ErrorValue::new(
                        "Error",
                        format!("cannot read stdin: {error}"),
                    ));
                    return;
                }
                None => {
                    writer.close();
                    return;
                }
            };
            if written.is_err() {
                return;
            }
        }
    });
    stream
}

fn read(mut reader: impl Read, sender: &mpsc::Sender<std::io::Result<Bytes>>) {
    loop {
        let mut buffer = vec![0; CHUNK];
        let chunk = match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => {
                buffer.truncate(read);
                Ok(Bytes::from(buffer))
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // A closed standard input is an empty one.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) => {
                return;
            }
            Err(error) => Err(error),
        };
        let last = chunk.is_err();
        if sender.blocking_send(chunk).is_err() || last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[tokio::test]
    async fn bytes_arrive_unchanged_and_end() {
        let data: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
        let mut stream = from_reader(std::io::Cursor::new(data.clone()));
        let mut seen = Vec::new();
        while let Some(chunk) = stream.next().await {
            let Value::Bytes(bytes) = chunk.unwrap() else {
                panic!("not bytes");
            };
            seen.extend_from_slice(&bytes);
        }
        assert_eq!(seen, data);
    }
}
