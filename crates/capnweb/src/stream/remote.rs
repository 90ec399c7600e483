//! The sending half of a stream whose reader is at the peer.

use std::sync::Arc;

use super::flow::Flow;
use crate::error::ErrorValue;
use crate::session::Shared;
use crate::stub::Stub;
use crate::value::Value;

/// Bytes of a chunk that travel in one message; more are split.
const PIECE: usize = 256 * 1024;

/// A sink at the peer. Dropping it releases the sink, which ends the stream
/// with an error unless it was closed.
pub(crate) struct RemoteSink {
    _hold: Stub,
    session: Arc<Shared>,
    id: i64,
    flow: Arc<Flow>,
}

impl RemoteSink {
    pub(crate) fn new(hold: Stub, session: Arc<Shared>, id: i64, flow: Arc<Flow>) -> Self {
        Self {
            _hold: hold,
            session,
            id,
            flow,
        }
    }

    pub(crate) async fn write(&mut self, chunk: Value) -> Result<(), Arc<ErrorValue>> {
        let Value::Bytes(mut bytes) = chunk else {
            return self.send(chunk).await;
        };
        while bytes.len() > PIECE {
            let piece = bytes.split_to(PIECE);
            self.send(Value::Bytes(piece)).await?;
        }
        self.send(Value::Bytes(bytes)).await
    }

    async fn send(&mut self, chunk: Value) -> Result<(), Arc<ErrorValue>> {
        self.flow.room().await?;
        self.session.room().await;
        self.session.send_write(self.id, chunk, &self.flow)
    }

    pub(crate) async fn failed(&self) -> Arc<ErrorValue> {
        self.flow.failed().await
    }

    pub(crate) async fn close(self) -> Result<(), Arc<ErrorValue>> {
        self.finish(None).await
    }

    pub(crate) async fn abort(self, error: ErrorValue) {
        // The reader learns of it, or is gone; either way it is over.
        let _ = self.finish(Some(error)).await;
    }

    async fn finish(self, abort: Option<ErrorValue>) -> Result<(), Arc<ErrorValue>> {
        tokio::select! {
            finished = self.session.send_finish(self.id, abort) => finished,
            error = self.flow.failed() => Err(error),
        }
    }
}
