//! The `code` property of the errors that this crate itself makes.

/// A message is larger than the sender may send or the receiver accepts.
pub const MESSAGE_TOO_LARGE: &str = "RPC_MESSAGE_TOO_LARGE";
/// A value is nested deeper than allowed, or holds too many parts.
pub const VALUE_TOO_COMPLEX: &str = "RPC_VALUE_TOO_COMPLEX";
/// A table of references is full.
pub const TABLE_FULL: &str = "RPC_TABLE_FULL";
/// Too many calls, or too many bytes of them, wait or run.
pub const TOO_MANY_CALLS: &str = "RPC_TOO_MANY_CALLS";
/// Results that the caller has not released take too much room.
pub const RESULTS_NOT_RELEASED: &str = "RPC_RESULTS_NOT_RELEASED";
/// A stream holds more unread bytes than allowed.
pub const STREAM_OVERFLOW: &str = "RPC_STREAM_OVERFLOW";
/// More messages wait for the peer to read them than allowed.
pub const PEER_NOT_READING: &str = "RPC_PEER_NOT_READING";
/// The message breaks the protocol.
pub const PROTOCOL_ERROR: &str = "RPC_PROTOCOL_ERROR";
/// The protocol has the feature, this peer does not.
pub const UNSUPPORTED: &str = "RPC_UNSUPPORTED";
/// The session has ended. `details.mayHaveRun` says whether the call was sent.
pub const DISCONNECTED: &str = "RPC_DISCONNECTED";
/// The call was given up before it had a result.
pub const CANCELED: &str = "RPC_CANCELED";
/// The other end of a stream is gone.
pub const STREAM_CLOSED: &str = "RPC_STREAM_CLOSED";
