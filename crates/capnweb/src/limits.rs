//! How much a peer may ask of this side.

/// The newest version of npm `capnweb` whose forms the peer is known to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// 0.8 and later: addresses are sent as strings, typed arrays as bytes, and
    /// received typed arrays are read as bytes.
    #[default]
    V0_8,
    /// 0.11 and later: addresses and typed arrays keep their types both ways.
    V0_11,
}

/// Bounds of one session, each with a default.
///
/// A breach ends either the one call or stream that caused it or, where the
/// peer's view of the tables would no longer agree with ours, the session. The
/// error has a `code` of [`codes`](crate::codes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one received message. More ends the session. 64 MiB.
    pub receive_bytes: usize,
    /// Bytes of one sent message. A larger call or result is rejected. 24 MiB.
    pub send_bytes: usize,
    /// How deep a value may nest, received or sent. 256.
    pub depth: usize,
    /// How many parts one received message may have. 1,048,576.
    pub values: usize,
    /// Digits of a received big integer. 16,384.
    pub bigint_digits: usize,
    /// References that the peer may hold to this side. More ends the session. 65,536.
    pub exports: usize,
    /// References that this side may hold to the peer. 65,536.
    pub imports: usize,
    /// Received calls that wait or run at one time. One more is rejected. 16,384.
    pub pending_calls: usize,
    /// What the arguments of those calls take, in bytes of text and 64 for each value. 128 MiB.
    pub pending_bytes: usize,
    /// Bytes of results that the caller has not released. 256 MiB.
    pub result_bytes: usize,
    /// Unread bytes of all received streams together. A stream that exceeds it fails. 64 MiB.
    pub stream_bytes: usize,
    /// Bytes of one sent stream that the peer has not acknowledged. 4 MiB.
    pub stream_window: usize,
    /// Bytes queued for the peer from which on streams and results wait. 1 MiB.
    pub queue_bytes: usize,
    /// Bytes queued for the peer at which a call is refused, and a message that
    /// cannot wait ends the session. 128 MiB.
    pub queue_max_bytes: usize,
    /// Instructions that one received `map` may run, over all elements and the
    /// maps inside it. 32,768.
    pub map_steps: usize,
    /// Bytes of instructions that it may so read, each as often as it runs. 16 MiB.
    pub map_bytes: usize,
    /// Bytes of one HTTP batch, sent or received. 64 MiB.
    pub batch_bytes: usize,
    /// What the peer reads.
    pub dialect: Dialect,
}

const MIB: usize = 1024 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            receive_bytes: 64 * MIB,
            send_bytes: 24 * MIB,
            depth: 256,
            values: MIB,
            bigint_digits: 16_384,
            exports: 65_536,
            imports: 65_536,
            pending_calls: 16_384,
            pending_bytes: 128 * MIB,
            result_bytes: 256 * MIB,
            stream_bytes: 64 * MIB,
            stream_window: 4 * MIB,
            queue_bytes: MIB,
            queue_max_bytes: 128 * MIB,
            map_steps: 32_768,
            map_bytes: 16 * MIB,
            batch_bytes: 64 * MIB,
            dialect: Dialect::V0_8,
        }
    }
}
