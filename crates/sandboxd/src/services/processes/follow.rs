//! Following what a process writes.

use super::Processes;
use crate::managers::process_table::{Cursor, Piece, Record, Source};
use crate::services::commands::{BEAT, Decoder, HEARTBEAT};
use bytes::Bytes;
use capnweb::{Canceled, ReadableStream, StreamWriter};
use hutch_protocol::{ApiError, ErrorCode, Timestamp};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// What may wait for one follower, in bytes. More stays in the log, and what the log
/// drops meanwhile is told by `gap: true` in the next event.
const WINDOW: usize = 128 * 1024;

impl Processes {
    /// The official event stream: all that is kept, then what comes, then `exit`.
    ///
    /// # Errors
    /// `PROCESS_NOT_FOUND`; `RESOURCE_BUSY` when too many follow.
    pub fn follow(&self, id: &str) -> Result<ReadableStream, ApiError> {
        let record = self.get(id)?;
        let slot = Arc::clone(&self.followers)
            .try_acquire_owned()
            .map_err(|_| {
                ApiError::new(
                    ErrorCode::ResourceBusy,
                    "too many readers follow logs; end one first",
                )
                .with("limit", super::FOLLOWERS_MAX)
            })?;
        let (mut writer, stream) = ReadableStream::channel(WINDOW);
        // Ends with the process, or when the reader is gone.
        tokio::spawn(async move {
            if run(&record, &mut writer).await.is_ok() {
                writer.close();
            }
            drop(slot);
        });
        Ok(stream)
    }
}

async fn run(record: &Record, writer: &mut StreamWriter) -> Result<(), Canceled> {
    let mut changes = record.changes();
    let mut cursor = Cursor::default();
    let mut streams = [
        Following::new(Source::Stdout),
        Following::new(Source::Stderr),
    ];
    loop {
        // Seen before the log is read: what is written after that is a change.
        let state = *changes.borrow_and_update();
        while let Some(piece) = record.next_piece(&mut cursor) {
            for stream in streams
                .iter_mut()
                .filter(|stream| stream.source == piece.source)
            {
                stream.send(record, &piece, writer).await?;
            }
        }
        if state.over() {
            for stream in &mut streams {
                stream.finish(record, writer).await?;
            }
            let exit = json!({
                "type": "exit", "exitCode": state.exit_code, "processId": record.id,
                "timestamp": Timestamp::now(),
            });
            return writer.write(frame(&exit)).await;
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = tokio::time::sleep(HEARTBEAT) => writer.write(Bytes::from_static(BEAT)).await?,
            gone = writer.closed() => return Err(gone),
        }
    }
}

/// One stream as a follower sees it.
struct Following {
    source: Source,
    decoder: Decoder,
}

impl Following {
    fn new(source: Source) -> Self {
        Self {
            source,
            decoder: Decoder::default(),
        }
    }

    async fn send(
        &mut self,
        record: &Record,
        piece: &Piece,
        writer: &mut StreamWriter,
    ) -> Result<(), Canceled> {
        let text = self.decoder.push(&piece.bytes);
        if text.is_empty() {
            Ok(())
        } else {
            self.event(record, &text, piece.gap, writer).await
        }
    }

    async fn finish(&mut self, record: &Record, writer: &mut StreamWriter) -> Result<(), Canceled> {
        let rest = self.decoder.finish();
        if rest.is_empty() {
            Ok(())
        } else {
            self.event(record, &rest, false, writer).await
        }
    }

    async fn event(
        &self,
        record: &Record,
        text: &str,
        gap: bool,
        writer: &mut StreamWriter,
    ) -> Result<(), Canceled> {
        let mut event = json!({
            "type": self.source.name(), "data": text, "processId": record.id,
            "timestamp": Timestamp::now(),
        });
        if gap {
            event["gap"] = true.into();
        }
        writer.write(frame(&event)).await
    }
}

fn frame(event: &Json) -> Bytes {
    Bytes::from(format!("data: {event}\n\n"))
}
