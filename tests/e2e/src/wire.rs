//! A client that writes what it likes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::Hutch;

/// How long the server may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first byte of a whole text message.
pub const TEXT: u8 = 0x81;

/// A socket after the handshake, and nothing else.
pub struct Wire(TcpStream);

impl Wire {
    /// A bare connection.
    pub fn connect(hutch: &Hutch) -> Self {
        let address = hutch.url().trim_start_matches("http://");
        let stream = TcpStream::connect(address).expect("a connection");
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .expect("timeouts");
        Self(stream)
    }

    /// A WebSocket of nobody known.
    pub fn stranger(hutch: &Hutch) -> Self {
        let mut wire = Self::connect(hutch);
        let host = hutch.url().trim_start_matches("http://");
        wire.bytes(format!("GET /api HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").as_bytes());
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            wire.0.read_exact(&mut byte).expect("an answer");
            head.push(byte[0]);
        }
        wire
    }

    /// One with a key. Its results 1 to 3 are the session, the project and the
    /// sandbox `main`; the next is 4.
    pub fn known(hutch: &Hutch) -> Self {
        let mut wire = Self::stranger(hutch);
        for text in Self::greeting(hutch) {
            wire.text(&text);
        }
        wire.text(r#"["pull",1]"#);
        assert!(wire.hears("[\"resolve\",1,"), "the key is taken");
        wire
    }

    /// What [`known`](Self::known) says.
    pub fn greeting(hutch: &Hutch) -> [String; 3] {
        let key = json!({"type": "bearer", "token": hutch.token()});
        [
            json!(["push", ["pipeline", 0, ["authenticate"], [key]]]),
            json!(["push", ["pipeline", 1, ["projects", "get"], ["default"]]]),
            json!([
                "push",
                ["pipeline", 2, ["sandboxes", "get"], ["/sandboxes/main"]]
            ]),
        ]
        .map(|message| message.to_string())
    }

    /// Sends bytes as they are; false once the server has hung up.
    pub fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    /// Sends one frame, masked with nothing.
    pub fn frame(&mut self, first: u8, payload: &[u8]) -> bool {
        let mut frame = vec![first];
        match payload.len() {
            size @ 0..126 => frame.push(0x80 | u8::try_from(size).expect("small")),
            size => {
                frame.push(0x80 | 127);
                frame.extend((size as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        self.bytes(&frame)
    }

    /// Sends one message.
    pub fn text(&mut self, text: &str) -> bool {
        self.frame(TEXT, text.as_bytes())
    }

    /// The next frame: its first byte and what is in it. `None` at the end.
    pub fn hear(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).ok()?;
        let size = match head[1] {
            126 => {
                let mut size = [0; 2];
                self.0.read_exact(&mut size).ok()?;
                u64::from(u16::from_be_bytes(size))
            }
            127 => {
                let mut size = [0; 8];
                self.0.read_exact(&mut size).ok()?;
                u64::from_be_bytes(size)
            }
            small => u64::from(small),
        };
        let mut payload = vec![0; usize::try_from(size).ok()?];
        self.0.read_exact(&mut payload).ok()?;
        Some((head[0], payload))
    }

    /// Reads up to a message that begins so; false if the end comes first.
    pub fn hears(&mut self, start: &str) -> bool {
        while let Some((_, payload)) = self.hear() {
            if payload.starts_with(start.as_bytes()) {
                return true;
            }
        }
        false
    }

    /// Everything up to the end, which the server must make.
    pub fn rest(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let mut part = vec![0; 64 * 1024];
        loop {
            match self.0.read(&mut part) {
                Ok(0) => return rest,
                Ok(read) => rest.extend(&part[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return rest,
                Err(error) => panic!("the server did not hang up: {error}"),
            }
        }
    }
}
