//! Streams that cross: only data comes through.

use std::sync::Arc;

use capnweb::{ReadableStream, WritableStream};

use crate::values::inert;
use crate::{Admitted, error_value, host_object};

/// Bytes of a stream that wait between the two sessions.
const WINDOW: usize = 1024 * 1024;

/// The same stream, which counts as activity, keeps the sandbox awake, and ends
/// with a typed error when the incarnation does.
pub(crate) fn held(mut stream: ReadableStream, admitted: Arc<dyn Admitted>) -> ReadableStream {
    let (writer, reader) = ReadableStream::channel(WINDOW);
    // Ends with the stream, with its reader, or with the incarnation.
    tokio::spawn(async move {
        let mut ended = admitted.ended();
        loop {
            let chunk = tokio::select! {
                biased;
                chunk = stream.next() => chunk,
                error = &mut ended => return writer.abort(error),
                canceled = writer.closed() => return stream.cancel(canceled.0),
            };
            let chunk = match chunk {
                None => return writer.close(),
                Some(Err(error)) => {
                    // The end of an incarnation also breaks its streams; say so.
                    return writer.abort(match admitted.is_over() {
                        Some(error) => error,
                        None => admitted.failed(&error).await,
                    });
                }
                Some(Ok(chunk)) => chunk,
            };
            let Ok(chunk) = inert(chunk) else {
                return writer.abort(error_value(host_object()));
            };
            admitted.touch();
            tokio::select! {
                written = writer.write(chunk) => if let Err(canceled) = written {
                    return stream.cancel(canceled.0);
                },
                error = &mut ended => return writer.abort(error),
            }
        }
    });
    reader
}

/// The same sink, bound to the incarnation alike.
pub(crate) fn held_sink(mut sink: WritableStream, admitted: Arc<dyn Admitted>) -> WritableStream {
    let (ours, mut reader) = WritableStream::channel(WINDOW);
    // Ends with the writer, with the sink, or with the incarnation.
    tokio::spawn(async move {
        let mut ended = admitted.ended();
        loop {
            let chunk = tokio::select! {
                biased;
                chunk = reader.next() => chunk,
                error = &mut ended => return reader.cancel(error),
            };
            let written = match chunk {
                None => {
                    let _ = sink.close().await;
                    return;
                }
                Some(Err(error)) => return sink.abort(error).await,
                Some(Ok(chunk)) => match inert(chunk) {
                    Ok(chunk) => sink.write(chunk).await,
                    Err(error) => return reader.cancel(error_value(error)),
                },
            };
            admitted.touch();
            if let Err(error) = written {
                return reader.cancel(admitted.failed(&error).await);
            }
        }
    });
    ours
}

/// A client's stream, of which only data comes through.
pub(crate) fn sieved(mut stream: ReadableStream) -> ReadableStream {
    let (writer, reader) = ReadableStream::channel(WINDOW);
    // Ends with the stream or with its reader.
    tokio::spawn(async move {
        loop {
            let chunk = tokio::select! {
                chunk = stream.next() => chunk,
                canceled = writer.closed() => return stream.cancel(canceled.0),
            };
            let chunk = match chunk {
                None => return writer.close(),
                Some(Err(error)) => return writer.abort(error),
                Some(Ok(chunk)) => inert(chunk),
            };
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => return writer.abort(error_value(error)),
            };
            if let Err(canceled) = writer.write(chunk).await {
                return stream.cancel(canceled.0);
            }
        }
    });
    reader
}

/// A client's sink, into which only data goes.
pub(crate) fn sieved_sink(mut sink: WritableStream) -> WritableStream {
    let (ours, mut reader) = WritableStream::channel(WINDOW);
    // Ends with the writer or with the sink.
    tokio::spawn(async move {
        loop {
            let chunk = tokio::select! {
                chunk = reader.next() => chunk,
                error = sink.closed() => return reader.cancel(error),
            };
            let chunk = match chunk {
                None => {
                    // The writer learns of a failed close by its own end.
                    let _ = sink.close().await;
                    return;
                }
                Some(Err(error)) => return sink.abort(error).await,
                Some(Ok(chunk)) => inert(chunk),
            };
            let written = match chunk {
                Ok(chunk) => sink.write(chunk).await,
                Err(error) => {
                    let error = error_value(error);
                    reader.cancel(error.clone());
                    return sink.abort(error).await;
                }
            };
            if let Err(error) = written {
                return reader.cancel(error);
            }
        }
    });
    ours
}
