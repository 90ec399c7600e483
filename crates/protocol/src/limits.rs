//! Limits that both sides know. Each has a typed error where it bites.

/// The largest RPC frame accepted, in bytes.
pub const FRAME_ACCEPTED_MAX: usize = 64 * 1024 * 1024;

/// The largest RPC frame sent, in bytes.
pub const FRAME_SENT_MAX: usize = 24 * 1024 * 1024;

/// How much encoded output one result keeps over both streams, in bytes.
pub const RESULT_OUTPUT_MAX: usize = 16 * 1024 * 1024;

/// How much content one call's arguments may carry, in bytes.
pub const ARGUMENT_CONTENT_MAX: usize = 32 * 1024 * 1024;

/// The largest payload of one event, in bytes of JSON.
pub const EVENT_PAYLOAD_MAX: usize = 64 * 1024;

/// How many variables one environment may have.
pub const ENV_COUNT_MAX: usize = 1024;

/// How many bytes of names and values one environment may have. Small enough
/// that the event which records it fits.
pub const ENV_BYTES_MAX: usize = 32 * 1024;

/// Open files of each process in a sandbox.
pub const NOFILE: u64 = 16_384;

/// The longest timeout of a command, in milliseconds.
pub const TIMEOUT_MS_MAX: u64 = 2_147_483_647;

/// Calls that may wait for `authenticate`, and their bytes together.
pub const UNAUTHENTICATED_CALLS_MAX: usize = 64;
/// See [`UNAUTHENTICATED_CALLS_MAX`].
pub const UNAUTHENTICATED_BYTES_MAX: usize = 1024 * 1024;
