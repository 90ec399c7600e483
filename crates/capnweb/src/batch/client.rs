//! Sends a batch.

use std::fmt::Display;
use std::sync::Arc;

use crate::codes;
use crate::error::ErrorValue;
use crate::limits::Limits;
use crate::object::Object;
use crate::session::{CloseReason, Collected, Connection, Shared};

/// The client's side of one batch.
///
/// ```
/// # async fn post(body: String) -> Result<String, std::io::Error> { Ok(body) }
/// # async fn example() -> Result<(), capnweb::ErrorValue> {
/// use capnweb::{Limits, batch::BatchClient};
///
/// let (connection, batch) = BatchClient::start(Limits::default());
/// let project = connection.main().call("authenticate", vec!["token".into()]).stub();
/// let list = project.call("sandboxes.list", vec![]);
/// let (list, _) = tokio::join!(list.into_future(), batch.run(post));
/// list?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct BatchClient(Arc<Shared>);

impl BatchClient {
    /// A session whose calls wait for [`run`](Self::run).
    pub fn start(limits: Limits) -> (Connection, Self) {
        let (connection, shared) = Connection::without_transport(None, limits);
        (connection, Self(shared))
    }

    /// Sends all calls that were made, and takes the answer. Results that are
    /// awaited by then, or [asked for](crate::Pending::ask), come back; whatever
    /// else is used of the session fails. `post` sends a body and gives the body
    /// of the answer, which it should not read beyond `batch_bytes`.
    pub async fn run<F, R, E>(self, post: F) -> CloseReason
    where
        F: FnOnce(String) -> R,
        R: Future<Output = Result<String, E>>,
        E: Display,
    {
        // Whoever awaits a result beside this asks for it first.
        tokio::task::yield_now().await;
        let shared = &self.0;
        let most = shared.limits().batch_bytes;
        let body = match shared.collect(most) {
            Collected::All(body) => body,
            Collected::TooMuch => {
                return self.end(CloseReason::Aborted(ErrorValue::coded(
                    codes::MESSAGE_TOO_LARGE,
                    format!("The calls of the batch are larger than {most} bytes."),
                )));
            }
        };
        shared.mute();
        let answer = match post(body).await {
            Ok(answer) if answer.len() > most => {
                return self.end(CloseReason::Aborted(crate::session::too_large(most)));
            }
            Ok(answer) => answer,
            Err(error) => return self.end(CloseReason::Aborted(failed(&error))),
        };
        for line in answer.split('\n').filter(|line| !line.trim().is_empty()) {
            shared.receive(line);
        }
        self.end(CloseReason::BatchEnded)
    }

    fn end(&self, reason: CloseReason) -> CloseReason {
        self.0.close(reason.clone());
        self.0.close_reason().unwrap_or(reason)
    }
}

fn failed(error: &impl Display) -> ErrorValue {
    let mut details = Object::new();
    details.insert("mayHaveRun", true);
    ErrorValue::coded(codes::DISCONNECTED, format!("RPC request failed: {error}"))
        .with_prop("details", details)
}

impl Drop for BatchClient {
    fn drop(&mut self) {
        self.0.close(CloseReason::Dropped);
    }
}
