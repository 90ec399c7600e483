//! Sessions that are one HTTP request: the client's messages are the body, the
//! server's are the answer, one a line.
//!
//! Nothing here does HTTP. A server gives [`BatchServer`] the body as it comes
//! and sends what [`BatchServer::finish`] returns; a client makes its calls and
//! has [`BatchClient::run`] send them. All calls of a batch leave at once, so a
//! call on the result of another must be made on its stub. What a server would
//! call at the client, functions and streams, fails: nobody is there to answer.

mod client;
mod server;

pub use client::BatchClient;
pub use server::BatchServer;
