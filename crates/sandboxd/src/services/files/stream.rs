//! Reading a file as a stream.

use super::Files;
use super::failure::failure;
use super::media::media_type;
use super::read::open;
use crate::services::commands::Decoder;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::{Bytes, BytesMut};
use capnweb::{Canceled, ErrorValue, ReadableStream, StreamWriter};
use hutch_protocol::{ApiError, Timestamp};
use serde_json::json;
use std::io::{self, Read, Seek, SeekFrom};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

/// How much is read at a time for a raw stream.
const PIECE: usize = 256 * 1024;
/// How much is read at a time for events: a multiple of three, so that base64 pieces join.
const EVENT_PIECE: usize = 65_535;
/// What may wait in one stream, in bytes.
const WINDOW: usize = 1024 * 1024;
const OPERATION: &str = "file.read";

/// A file's bytes as a stream.
#[derive(Debug)]
pub struct FileStream {
    /// The bytes.
    pub content: ReadableStream,
    /// The file's length when it was opened.
    pub size: u64,
    /// Its media type.
    pub media_type: &'static str,
}

impl Files {
    /// Opens a regular file of any size. Cancelling the stream closes the file.
    ///
    /// # Errors
    /// As [`Files::read`], less the size.
    pub async fn stream(&self, path: &str) -> Result<FileStream, ApiError> {
        let opened = self.blocking(OPERATION, path, |location| {
            let (file, size) = open(location)?;
            Ok((file, size, media_type(&location.path, false)))
        });
        let (file, size, media_type) = opened.await?;
        let (writer, content) = ReadableStream::channel(WINDOW);
        // Ends with the file, or when the reader is gone.
        tokio::spawn(copy(File::from_std(file), writer));
        Ok(FileStream {
            content,
            size,
            media_type,
        })
    }

    /// The official event stream of a file: `metadata`, `chunk`s, `complete`. What goes wrong
    /// is an `error` event.
    pub async fn event_stream(&self, path: &str) -> ReadableStream {
        let (mut writer, stream) = ReadableStream::channel(WINDOW);
        let opened = self.blocking(OPERATION, path, |location| {
            let (mut file, size) = open(location)?;
            let fail = |error| failure(OPERATION, &location.shown, &error);
            let text = is_text(&mut file).map_err(fail)?;
            file.seek(SeekFrom::Start(0)).map_err(fail)?;
            Ok((file, size, text, media_type(&location.path, text)))
        });
        let opened = opened.await;
        // Ends with the file, or when the reader is gone.
        tokio::spawn(async move {
            let sent = match opened {
                Ok((file, size, text, media_type)) => {
                    let metadata = json!({
                        "type": "metadata", "mimeType": media_type, "size": size, "isBinary": !text,
                        "encoding": if text { "utf-8" } else { "base64" },
                    });
                    events(File::from_std(file), text, &metadata, &mut writer).await
                }
                Err(error) => {
                    writer
                        .write(event(
                            &json!({"type": "error", "error": error.message, "code": error.code}),
                        ))
                        .await
                }
            };
            if sent.is_ok() {
                writer.close();
            }
        });
        stream
    }
}

async fn copy(mut file: File, writer: StreamWriter) {
    file.set_max_buf_size(PIECE);
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(PIECE);
        let read = tokio::select! {
            read = file.read_buf(&mut buffer) => read,
            _ = writer.closed() => return,
        };
        match read {
            Ok(0) => return writer.close(),
            Ok(_) => {
                if writer.write(buffer.split().freeze()).await.is_err() {
                    return;
                }
            }
            Err(error) => return writer.abort(ErrorValue::new("Error", error.to_string())),
        }
    }
}

async fn events(
    mut file: File,
    text: bool,
    metadata: &serde_json::Value,
    writer: &mut StreamWriter,
) -> Result<(), Canceled> {
    writer.write(event(metadata)).await?;
    let mut decoder = Decoder::default();
    let mut total: u64 = 0;
    let mut piece = vec![0; EVENT_PIECE];
    loop {
        let data = match fill(&mut file, &mut piece).await {
            Ok(0) => break,
            Ok(length) => {
                total += length as u64;
                if text {
                    decoder.push(&piece[..length])
                } else {
                    BASE64_STANDARD.encode(&piece[..length])
                }
            }
            Err(error) => {
                return writer
                    .write(event(&json!({"type": "error", "error": error.to_string()})))
                    .await;
            }
        };
        if !data.is_empty() {
            writer
                .write(event(&json!({"type": "chunk", "data": data})))
                .await?;
        }
    }
    let rest = decoder.finish();
    if !rest.is_empty() {
        writer
            .write(event(&json!({"type": "chunk", "data": rest})))
            .await?;
    }
    let complete = json!({"type": "complete", "bytesRead": total, "timestamp": Timestamp::now()});
    writer.write(event(&complete)).await
}

/// Reads until the piece is full or the file ends.
async fn fill(file: &mut File, piece: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match file.read(&mut piece[filled..]).await? {
            0 => break,
            length => filled += length,
        }
    }
    Ok(filled)
}

fn event(data: &serde_json::Value) -> Bytes {
    Bytes::from(format!("data: {data}\n\n"))
}

/// Whether the whole file is UTF-8, so that nothing need be replaced in it.
fn is_text(file: &mut std::fs::File) -> io::Result<bool> {
    let mut piece = vec![0; PIECE];
    let mut kept = 0;
    loop {
        let read = file.read(&mut piece[kept..])?;
        if read == 0 {
            return Ok(kept == 0);
        }
        let end = kept + read;
        kept = match std::str::from_utf8(&piece[..end]) {
            Ok(_) => 0,
            Err(error) if error.error_len().is_some() => return Ok(false),
            Err(error) => {
                piece.copy_within(error.valid_up_to()..end, 0);
                end - error.valid_up_to()
            }
        };
    }
}
