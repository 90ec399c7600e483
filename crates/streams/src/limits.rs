//! How large everything may be. Exceeding one is a typed error, never a cut.

/// Bytes of one event's payload as JSON.
pub const PAYLOAD_BYTES: usize = hutch_protocol::limits::EVENT_PAYLOAD_MAX;
/// Bytes of one event's metadata as JSON.
pub const METADATA_BYTES: usize = 16 * 1024;
/// Levels of nesting in a payload, metadata or record. Deeper JSON could be
/// written, but not read back by the parser.
pub const JSON_DEPTH: usize = 64;
/// Bytes of an event type.
pub const EVENT_TYPE_BYTES: usize = 128;
/// Bytes of an idempotency key.
pub const IDEMPOTENCY_KEY_BYTES: usize = 768;
/// Events in one append.
pub const EVENTS_PER_APPEND: usize = 1000;
/// Appends, record writes and record deletes of one transaction together.
pub const OPERATIONS_PER_TRANSACTION: usize = 256;
/// Bytes of all payloads, metadata and records of one transaction.
pub const TRANSACTION_BYTES: usize = 4 * 1024 * 1024;
/// Segments of a stream path. Each new stream announces itself to every
/// ancestor, so the work of making one grows with the square of this.
pub const PATH_SEGMENTS: usize = 16;
/// Bytes of one record's document as JSON.
pub const RECORD_BYTES: usize = 256 * 1024;
/// Bytes of a record's kind.
pub const RECORD_KIND_BYTES: usize = 64;
/// Bytes of a record's key.
pub const RECORD_KEY_BYTES: usize = 512;
/// Events that one read returns at most.
pub const EVENTS_PER_READ: usize = 500;
/// Event types that one filter names at most.
pub const TYPES_PER_FILTER: usize = 64;
/// Streams that one listing returns at most.
pub const STREAMS_PER_READ: usize = 1000;
/// Events of one batch to a live subscriber.
pub const EVENTS_PER_BATCH: usize = 100;
/// Bytes of payloads and metadata after which a batch to a live subscriber
/// ends; one event more than this is still delivered.
pub const BATCH_BYTES: usize = 1024 * 1024;
