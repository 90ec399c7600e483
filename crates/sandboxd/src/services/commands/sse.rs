//! A command's life as server-sent events.

use super::decoder::Decoder;
use super::launch::{Commands, Running};
use super::output::Output;
use super::request::Request;
use bytes::Bytes;
use capnweb::{ReadableStream, StreamWriter};
use hutch_protocol::{ApiError, Timestamp};
use serde_json::{Value as Json, json};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What may wait in one event stream, in bytes, before the command is held up.
const WINDOW: usize = 256 * 1024;
/// How long an event stream is silent before a comment is sent. Over the wire a reader who
/// has gone shows only at a write.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);
/// A comment of server-sent events, which every reader skips.
pub(crate) const BEAT: &[u8] = b":\n\n";

impl Commands {
    /// Starts a command and streams its events: `start`, `stdout` and `stderr`, then
    /// `complete` or `error`. Cancelling the stream ends everything the command started.
    ///
    /// # Errors
    /// As [`Commands::start`].
    pub async fn exec_stream(
        self: &Arc<Self>,
        request: Request,
        session: Option<String>,
    ) -> Result<ReadableStream, ApiError> {
        let command = request.command();
        let timeout = request.timeout;
        let running = self.start(request).await?;
        let (writer, stream) = ReadableStream::channel(WINDOW);
        let commands = Arc::clone(self);
        let start = json!({
            "type": "start", "command": command, "sessionId": session,
            "pid": running.pid(), "timestamp": Timestamp::now(),
        });
        let late =
            timeout.map(|timeout| format!("Command timed out after {}ms\n", timeout.as_millis()));
        // Ends with the command, or when the reader is gone.
        tokio::spawn(async move {
            let (events, queue) = Events::queue();
            let pump = async {
                events.send("start", &start).await?;
                commands.pump(running, events, late.as_deref()).await
            };
            relay(pump, writer, queue).await;
        });
        Ok(stream)
    }

    async fn pump(&self, running: Running, events: Events, late: Option<&str>) -> Result<(), Gone> {
        let (result, out, err) = running
            .finish(
                self.sinks(),
                |output| forward("stdout", output, &events),
                |output| forward("stderr", output, &events),
            )
            .await;
        out.and(err)?;
        match result {
            Ok(result) => {
                if let Some(line) = late.filter(|_| result.timed_out) {
                    events.output("stderr", line).await?;
                }
                events
                    .send(
                        "complete",
                        &json!({
                            "type": "complete", "exitCode": result.code(),
                            "timedOut": result.timed_out, "timestamp": Timestamp::now(),
                        }),
                    )
                    .await
            }
            Err(error) => events.send("error", &error_event(&error)).await,
        }
    }
}

/// A stream that holds nothing but the reason why the command did not start.
pub fn failed_stream(error: &ApiError) -> ReadableStream {
    let (writer, stream) = ReadableStream::channel(WINDOW);
    let event = error_event(error);
    tokio::spawn(async move {
        let (events, queue) = Events::queue();
        relay(
            async move { events.send("error", &event).await },
            writer,
            queue,
        )
        .await;
    });
    stream
}

fn error_event(error: &ApiError) -> Json {
    json!({
        "type": "error", "error": error.message, "code": error.code, "timestamp": Timestamp::now(),
    })
}

async fn forward(name: &str, mut output: Output, events: &Events) -> (Output, Result<(), Gone>) {
    let mut decoder = Decoder::default();
    while let Some(piece) = output.next().await {
        let text = decoder.push(&piece);
        if !text.is_empty() && events.output(name, &text).await.is_err() {
            return (output, Err(Gone));
        }
    }
    let rest = decoder.finish();
    let sent = if rest.is_empty() {
        Ok(())
    } else {
        events.output(name, &rest).await
    };
    (output, sent)
}

/// The reader is gone.
struct Gone;

struct Events(mpsc::Sender<Bytes>);

impl Events {
    fn queue() -> (Self, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    async fn output(&self, name: &str, text: &str) -> Result<(), Gone> {
        let event = json!({ "type": name, "data": text, "timestamp": Timestamp::now() });
        self.send(name, &event).await
    }

    async fn send(&self, name: &str, event: &Json) -> Result<(), Gone> {
        let frame = Bytes::from(format!("event: {name}\ndata: {event}\n\n"));
        self.0.send(frame).await.map_err(|_| Gone)
    }
}

/// Runs `pump` and hands its events to the reader; drops it when the reader is gone.
async fn relay(
    pump: impl Future<Output = Result<(), Gone>>,
    writer: StreamWriter,
    queue: mpsc::Receiver<Bytes>,
) {
    let mut deliver = pin!(deliver(writer, queue));
    tokio::select! {
        _ = pump => deliver.await,
        () = &mut deliver => {}
    }
}

async fn deliver(writer: StreamWriter, mut queue: mpsc::Receiver<Bytes>) {
    loop {
        let frame = tokio::select! {
            frame = queue.recv() => frame,
            () = tokio::time::sleep(HEARTBEAT) => Some(Bytes::from_static(BEAT)),
            _ = writer.closed() => return,
        };
        match frame {
            Some(frame) => {
                if writer.write(frame).await.is_err() {
                    return;
                }
            }
            None => return writer.close(),
        }
    }
}
