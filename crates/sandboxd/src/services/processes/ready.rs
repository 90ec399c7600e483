//! Waiting until a process is ready: until it wrote something, or until it
//! serves a port. That it ends first is told at once.

use super::Processes;
use super::listeners::Listeners;
use super::wait::{ended_before, timed_out};
use crate::managers::process_table::{Cursor, Record, Source};
use hutch_protocol::{ApiError, ErrorCode};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long one try to reach a port may take.
const TRY: Duration = Duration::from_secs(5);
/// The longest text to look for, and the longest line that is looked at.
const LINE_MAX: usize = 64 * 1024;
/// How much of an HTTP answer is read.
const HEAD_MAX: u64 = 8 * 1024;

/// A port that a process is to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u16,
    /// When it counts as served.
    pub probe: Probe,
    /// How long to wait between two tries.
    pub interval: Duration,
}

/// When a port counts as served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It takes connections.
    Tcp,
    /// It answers a GET.
    Http {
        /// What is asked for; begins with `/`.
        path: String,
        /// The answers that count.
        status: RangeInclusive<u16>,
    },
}

impl Processes {
    /// Waits until the process has written `text` and returns the line that has it, as far as
    /// it was written by then. What it wrote before counts, too.
    ///
    /// # Errors
    /// `PROCESS_NOT_FOUND`; `PROCESS_EXITED_BEFORE_READY`; `PROCESS_READY_TIMEOUT` when `limit`
    /// passes first; `VALIDATION_FAILED` for a text that no line can hold.
    pub async fn wait_for_log(
        &self,
        id: &str,
        text: &str,
        limit: Option<Duration>,
    ) -> Result<String, ApiError> {
        if text.is_empty() || text.len() > LINE_MAX / 2 || text.contains('\n') {
            let message = format!(
                "waitForLog looks for a text within a line, of 1 to {} bytes",
                LINE_MAX / 2
            );
            return Err(ApiError::new(ErrorCode::ValidationFailed, message));
        }
        let record = self.get(id)?;
        let shown: String = text.chars().take(200).collect();
        let condition = format!("\"{shown}\"");
        within(
            &record,
            &condition,
            limit,
            written(&record, text, &condition),
        )
        .await
    }

    /// Waits until the process, or one that it started, serves the port.
    ///
    /// # Errors
    /// `PROCESS_NOT_FOUND`; `PROCESS_EXITED_BEFORE_READY`; `PROCESS_READY_TIMEOUT` when `limit`
    /// passes first.
    pub async fn wait_for_port(
        &self,
        id: &str,
        port: &Port,
        limit: Option<Duration>,
    ) -> Result<(), ApiError> {
        let record = self.get(id)?;
        let condition = match &port.probe {
            Probe::Tcp => format!("port {} (TCP)", port.number),
            Probe::Http { path, .. } => format!("port {} (HTTP {path})", port.number),
        };
        within(
            &record,
            &condition,
            limit,
            served(&record, port, &condition),
        )
        .await
    }
}

async fn within<T>(
    record: &Record,
    condition: &str,
    limit: Option<Duration>,
    ready: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    match limit {
        None => ready.await,
        Some(limit) => tokio::time::timeout(limit, ready)
            .await
            .unwrap_or_else(|_| Err(timed_out(record, condition, limit))),
    }
}

async fn written(record: &Record, text: &str, condition: &str) -> Result<String, ApiError> {
    let mut changes = record.changes();
    let mut cursor = Cursor::default();
    let mut lines = [Line::default(), Line::default()];
    loop {
        // Seen before the log is read: what is written after that is a change.
        let over = changes.borrow_and_update().over();
        while let Some(piece) = record.next_piece(&mut cursor) {
            let line = &mut lines[usize::from(piece.source == Source::Stderr)];
            if piece.gap {
                line.0.clear();
            }
            if let Some(found) = line.find(&piece.bytes, text.as_bytes()) {
                return Ok(found);
            }
        }
        if over || changes.changed().await.is_err() {
            return Err(ended_before(record, condition));
        }
    }
}

/// The line that a stream is at.
#[derive(Debug, Default)]
struct Line(Vec<u8>);

impl Line {
    /// Goes on with what was written; the first line that has `text`.
    fn find(&mut self, mut written: &[u8], text: &[u8]) -> Option<String> {
        while !written.is_empty() {
            let end = written.iter().position(|byte| *byte == b'\n');
            let (part, rest) = written.split_at(end.unwrap_or(written.len()).min(LINE_MAX / 2));
            self.0.extend_from_slice(part);
            if self.0.windows(text.len()).any(|window| window == text) {
                let line = String::from_utf8_lossy(&self.0);
                return Some(line.trim_end_matches('\r').to_owned());
            }
            if self.0.len() > LINE_MAX {
                self.0.drain(..self.0.len() - LINE_MAX / 2);
            }
            written = match rest.split_first() {
                Some((b'\n', rest)) => {
                    self.0.clear();
                    rest
                }
                _ => rest,
            };
        }
        None
    }
}

async fn served(record: &Arc<Record>, port: &Port, condition: &str) -> Result<(), ApiError> {
    let mut changes = record.changes();
    loop {
        if changes.borrow_and_update().over() {
            return Err(ended_before(record, condition));
        }
        // Somebody else's port would answer as well.
        if is_its_own(record, port.number).await && answers(port).await {
            return Ok(());
        }
        let over = changes.wait_for(|state| state.over());
        // Whether it is over is looked at next, either way.
        let _ = tokio::time::timeout(port.interval, over).await;
    }
}

async fn is_its_own(record: &Record, port: u16) -> bool {
    let Ok(members) = record.tree.members().await else {
        return false;
    };
    let looking = tokio::task::spawn_blocking(move || {
        Listeners::on(port).is_some_and(|listeners| listeners.belong_to(&members))
    });
    looking.await.unwrap_or(false)
}

async fn answers(port: &Port) -> bool {
    let answer = async {
        let mut stream = connect(port.number).await?;
        match &port.probe {
            Probe::Tcp => Ok(true),
            Probe::Http { path, status } => {
                let number = port.number;
                let request = format!(
                    "GET {path} HTTP/1.1\r\nHost: localhost:{number}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
                );
                stream.write_all(request.as_bytes()).await?;
                let mut head = Vec::new();
                let mut stream = stream.take(HEAD_MAX);
                while !head.contains(&b'\n') && stream.read_buf(&mut head).await? > 0 {}
                Ok(status_of(&head).is_some_and(|code| status.contains(&code)))
            }
        }
    };
    let answer: Result<std::io::Result<bool>, _> = tokio::time::timeout(TRY, answer).await;
    matches!(answer, Ok(Ok(true)))
}

/// A server may listen on either loopback address alone.
async fn connect(port: u16) -> std::io::Result<TcpStream> {
    match TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
        Ok(stream) => Ok(stream),
        Err(_) => TcpStream::connect(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await,
    }
}

fn status_of(head: &[u8]) -> Option<u16> {
    let line = head.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(line).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_pieces_and_not_across_lines() {
        let mut line = Line::default();
        assert_eq!(line.find(b"one rea", b"ready"), None);
        let found = line.find(b"dy\r and more\nnext", b"ready");
        assert_eq!(found.as_deref(), Some("one ready\r and more"));
        let mut line = Line::default();
        assert_eq!(line.find(b"rea\ndy\n", b"ready"), None);
        assert_eq!(line.find(&vec![b'x'; 3 * LINE_MAX], b"ready"), None);
        assert!(line.0.len() <= LINE_MAX + LINE_MAX / 2);
        assert_eq!(line.find(b"re", b"ready"), None);
        let found = line.find(b"ady", b"ready").unwrap_or_default();
        assert!(found.ends_with("xready"));
    }

    #[test]
    fn the_status_is_read_from_the_first_line() {
        assert_eq!(status_of(b"HTTP/1.1 204 No Content\r\n"), Some(204));
        assert_eq!(status_of(b"HTTP/1.0 500"), Some(500));
        for odd in [
            &b"HTTP/2 200"[..],
            b"",
            b"HTTP/1.1 2",
            b"SSH-2.0-x",
            b"HTTP/1.1 abc",
        ] {
            assert_eq!(status_of(odd), None);
        }
    }
}
