//! As much HTTP as a batch needs.

use std::sync::Arc;

use capnweb::batch::BatchServer;
use capnweb::{Limits, Target};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Answers each request of a connection with its batch.
pub async fn serve<T: Target>(io: TcpStream, main: impl Fn() -> Arc<T>) {
    let mut io = BufReader::new(io);
    loop {
        let Some(length) = head(&mut io).await else {
            return;
        };
        let mut body = vec![0; length];
        io.read_exact(&mut body).await.unwrap();
        let (_connection, mut batch) = BatchServer::start(Some(main()), Limits::default());
        batch.feed(&body);
        let answer = batch.finish().await;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        io.write_all(head.as_bytes()).await.unwrap();
        io.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// Posts a body; the body of the answer.
pub async fn post(port: u16, body: String) -> Result<String, std::io::Error> {
    let mut io = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?);
    let head_of = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    io.write_all(head_of.as_bytes()).await?;
    io.write_all(body.as_bytes()).await?;
    let mut all = String::new();
    io.read_to_string(&mut all).await?;
    let (head, rest) = all.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{all}");
    if !head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        return Ok(rest.to_owned());
    }
    let (mut body, mut rest) = (String::new(), rest);
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&more[..size]);
        rest = more[size..].trim_start_matches("\r\n");
    }
    Ok(body)
}

/// The length of the next request's body; `None` at the end.
async fn head(io: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if io.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            return Some(length);
        }
    }
}
