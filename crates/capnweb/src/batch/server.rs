//! Answers a batch.

use std::sync::Arc;

use bytes::BytesMut;

use crate::codes;
use crate::error::ErrorValue;
use crate::limits::Limits;
use crate::session::{Collected, Connection, Shared};
use crate::target::Target;

/// The server's side of one batch. Dropping it gives up what still runs.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use capnweb::{Limits, Stub, batch::BatchServer};
/// # struct Main;
/// # impl capnweb::Target for Main {
/// #     fn call(self: std::sync::Arc<Self>, _: capnweb::Path, args: Vec<capnweb::Value>) -> capnweb::CallFuture {
/// #         Box::pin(async move { Ok(args.into_iter().next().unwrap_or_default()) })
/// #     }
/// # }
/// let (connection, mut batch) = BatchServer::start(Some(std::sync::Arc::new(Main)), Limits::default());
/// batch.feed(b"[\"push\",[\"pipeline\",0,[\"echo\"],[7]]]\n[\"pull\",1]");
/// while batch.step() {}
/// assert_eq!(batch.finish().await, "[\"resolve\",1,7]");
/// # });
/// ```
#[derive(Debug)]
pub struct BatchServer {
    shared: Arc<Shared>,
    body: BytesMut,
    /// How much of `body` is known to hold no end of a line.
    scanned: usize,
    taken: usize,
}

impl BatchServer {
    /// A session that offers `main` to the sender of a body.
    pub fn start(main: Option<Arc<dyn Target>>, limits: Limits) -> (Connection, Self) {
        let (connection, shared) = Connection::without_transport(main, limits);
        shared.mute();
        let server = Self {
            shared,
            body: BytesMut::new(),
            scanned: 0,
            taken: 0,
        };
        (connection, server)
    }

    /// Takes a part of the body. A body of more than `batch_bytes`, or a
    /// message of more than `receive_bytes`, ends the session with an error.
    pub fn feed(&mut self, part: &[u8]) {
        let limits = self.shared.limits();
        self.taken = self.taken.saturating_add(part.len());
        if self.shared.is_closed() {
            return;
        }
        if self.taken > limits.batch_bytes {
            return self.abort(ErrorValue::coded(
                codes::MESSAGE_TOO_LARGE,
                format!("The batch is larger than {} bytes.", limits.batch_bytes),
            ));
        }
        self.body.extend_from_slice(part);
    }

    /// Takes the next whole message of what was fed; false if there is none.
    pub fn step(&mut self) -> bool {
        if self.shared.is_closed() {
            self.body.clear();
            return false;
        }
        let rest = self.body.get(self.scanned..).unwrap_or_default();
        let Some(at) = rest.iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.body.len();
            let most = self.shared.limits().receive_bytes;
            if self.scanned > most {
                self.abort(crate::session::too_large(most));
            }
            return false;
        };
        let line = self.body.split_to(self.scanned + at + 1);
        self.scanned = 0;
        self.message(line.get(..line.len() - 1).unwrap_or_default());
        true
    }

    fn message(&self, line: &[u8]) {
        match std::str::from_utf8(line) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => self.shared.receive(text),
            Err(_) => self.abort(
                ErrorValue::type_error("A message is not UTF-8.")
                    .with_prop("code", codes::PROTOCOL_ERROR),
            ),
        }
    }

    fn abort(&self, error: ErrorValue) {
        self.shared
            .close(crate::session::CloseReason::Aborted(error));
    }

    /// The body is complete: waits until each result that was asked for is
    /// there and returns the answer. After a breach of the protocol, and if the
    /// answer is larger than `batch_bytes`, that is an `abort` message.
    pub async fn finish(mut self) -> String {
        while self.step() {}
        let last = self.body.split();
        self.message(&last);
        drop(last);
        self.shared.no_more_input();
        let most = self.shared.limits().batch_bytes;
        match self.shared.collect_until_settled(most).await {
            Collected::All(answer) => answer,
            Collected::TooMuch => {
                self.abort(ErrorValue::coded(
                    codes::MESSAGE_TOO_LARGE,
                    format!("The results of the batch are larger than {most} bytes."),
                ));
                match self.shared.collect(usize::MAX) {
                    Collected::All(answer) => answer,
                    Collected::TooMuch => String::new(),
                }
            }
        }
    }
}

impl Drop for BatchServer {
    fn drop(&mut self) {
        self.shared.close(crate::session::CloseReason::Dropped);
    }
}
