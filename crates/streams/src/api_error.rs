//! Store errors as every surface of hutch shows them.

use hutch_protocol::{ApiError, ErrorCode};

use crate::error::StoreError;

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let plain = Self::new(code(&error), error.to_string());
        match error {
            StoreError::OffsetConflict {
                stream,
                expected,
                found,
            } => plain
                .with("name", "StreamOffsetConflictError")
                .with("path", stream.path.as_str())
                .with("expected", expected)
                .with("found", found),
            StoreError::IdempotencyConflict {
                stream, existing, ..
            }
            | StoreError::IdempotencyOffset {
                stream, existing, ..
            } => plain
                .with("path", stream.path.as_str())
                .with("key", existing.idempotency_key)
                .with("offset", existing.offset),
            StoreError::TooLarge {
                what,
                unit,
                actual,
                limit,
            } => plain
                .with("what", what)
                .with("unit", unit)
                .with("actual", actual)
                .with("limit", limit),
            StoreError::RecordConflict { id, found } => plain
                .with("kind", id.kind)
                .with("key", id.key)
                .with("found", found),
            StoreError::WaitTimeout { path, after_offset } => plain
                .with("reason", "stream-wait-timeout")
                .with("path", path)
                .with("afterOffset", after_offset),
            StoreError::TooManySubscriptions { limit } => plain.with("limit", limit),
            StoreError::Closed => plain.with("reason", "store-closed"),
            StoreError::Invalid(_) | StoreError::Database(_) | StoreError::Damaged(_) => plain,
        }
    }
}

fn code(error: &StoreError) -> ErrorCode {
    match error {
        StoreError::Invalid(_) => ErrorCode::ValidationFailed,
        StoreError::TooLarge { .. } => ErrorCode::PayloadTooLarge,
        StoreError::OffsetConflict { .. } => ErrorCode::StreamOffsetConflict,
        StoreError::IdempotencyConflict { .. } | StoreError::IdempotencyOffset { .. } => {
            ErrorCode::IdempotencyConflict
        }
        StoreError::RecordConflict { .. } => ErrorCode::ResourceBusy,
        StoreError::TooManySubscriptions { .. } => ErrorCode::CapacityExceeded,
        StoreError::WaitTimeout { .. } => ErrorCode::ProcessReadyTimeout,
        StoreError::Closed => ErrorCode::OperationInterrupted,
        StoreError::Database(source)
            if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) =>
        {
            ErrorCode::NoSpace
        }
        StoreError::Database(_) | StoreError::Damaged(_) => ErrorCode::InternalError,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::StreamKey;

    #[test]
    fn a_full_disk_has_a_code_of_its_own() {
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let error = StoreError::from(rusqlite::Error::SqliteFailure(full, None));
        assert_eq!(ApiError::from(error).code, ErrorCode::NoSpace);
    }

    #[test]
    fn an_offset_conflict_keeps_the_name_that_clients_match_on() {
        let error = ApiError::from(StoreError::OffsetConflict {
            stream: StreamKey {
                project: None,
                path: "/notes".parse().unwrap(),
            },
            expected: 4,
            found: 2,
        });
        assert_eq!(error.code, ErrorCode::StreamOffsetConflict);
        assert_eq!(error.message, "expected next offset 4, found 2");
        assert_eq!(error.details["name"], "StreamOffsetConflictError");
    }
}
