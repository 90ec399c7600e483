//! Moves a stream into a sink.

use super::{ReadableStream, WritableStream};

/// Reads to the end and writes all of it. An error on either side reaches the
/// other at once, also while the source is silent.
pub(crate) async fn pump(mut source: ReadableStream, mut sink: WritableStream) {
    loop {
        let next = tokio::select! {
            next = source.next() => next,
            error = sink.closed() => return source.cancel(error),
        };
        match next {
            Some(Ok(chunk)) => {
                if let Err(error) = sink.write(chunk).await {
                    return source.cancel(error);
                }
            }
            Some(Err(error)) => return sink.abort(error).await,
            None => {
                // The reader learns of a failed close by its own end of the stream.
                let _ = sink.close().await;
                return;
            }
        }
    }
}
