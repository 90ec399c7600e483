//! Every error code that crosses an edge of hutch, with its HTTP status.
//!
//! The first block is the official sandbox API's; those codes name what went
//! wrong inside a sandbox. The second block is ours.

use std::fmt;
use std::str::FromStr;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $status:literal;)*) => {
        /// A stable, machine-readable reason for a refusal or failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the text of each code is its documentation")]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorCode {
            /// All codes, in the order of this file.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The text that travels, such as `FILE_NOT_FOUND`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The HTTP status that the code maps to on every surface.
            #[must_use]
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }
        }

        impl FromStr for ErrorCode {
            type Err = UnknownCode;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err(UnknownCode),
                }
            }
        }
    };
}

/// The text is not one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown error code")]
pub struct UnknownCode;

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

codes! {
    // 400
    IsDirectory = "IS_DIRECTORY", 400;
    NotDirectory = "NOT_DIRECTORY", 400;
    InvalidCommand = "INVALID_COMMAND", 400;
    InvalidPortNumber = "INVALID_PORT_NUMBER", 400;
    InvalidPort = "INVALID_PORT", 400;
    InvalidGitUrl = "INVALID_GIT_URL", 400;
    CustomDomainRequired = "CUSTOM_DOMAIN_REQUIRED", 400;
    InvalidJsonResponse = "INVALID_JSON_RESPONSE", 400;
    NameTooLong = "NAME_TOO_LONG", 400;
    ValidationFailed = "VALIDATION_FAILED", 400;
    MissingCredentials = "MISSING_CREDENTIALS", 400;
    InvalidMountConfig = "INVALID_MOUNT_CONFIG", 400;
    BackupExpired = "BACKUP_EXPIRED", 400;
    InvalidBackupConfig = "INVALID_BACKUP_CONFIG", 400;
    // 401, 403
    GitAuthFailed = "GIT_AUTH_FAILED", 401;
    PermissionDenied = "PERMISSION_DENIED", 403;
    CommandPermissionDenied = "COMMAND_PERMISSION_DENIED", 403;
    ProcessPermissionDenied = "PROCESS_PERMISSION_DENIED", 403;
    ReadOnly = "READ_ONLY", 403;
    // 404
    FileNotFound = "FILE_NOT_FOUND", 404;
    CommandNotFound = "COMMAND_NOT_FOUND", 404;
    ProcessNotFound = "PROCESS_NOT_FOUND", 404;
    PortNotExposed = "PORT_NOT_EXPOSED", 404;
    GitRepositoryNotFound = "GIT_REPOSITORY_NOT_FOUND", 404;
    GitBranchNotFound = "GIT_BRANCH_NOT_FOUND", 404;
    ContextNotFound = "CONTEXT_NOT_FOUND", 404;
    WatchNotFound = "WATCH_NOT_FOUND", 404;
    BackupNotFound = "BACKUP_NOT_FOUND", 404;
    // 408, 409, 410, 413
    ProcessReadyTimeout = "PROCESS_READY_TIMEOUT", 408;
    FileExists = "FILE_EXISTS", 409;
    PortAlreadyExposed = "PORT_ALREADY_EXPOSED", 409;
    PortInUse = "PORT_IN_USE", 409;
    ResourceBusy = "RESOURCE_BUSY", 409;
    SessionAlreadyExists = "SESSION_ALREADY_EXISTS", 409;
    OperationInterrupted = "OPERATION_INTERRUPTED", 409;
    SessionDestroyed = "SESSION_DESTROYED", 410;
    SessionTerminated = "SESSION_TERMINATED", 410;
    FileTooLarge = "FILE_TOO_LARGE", 413;
    // 501, 502, 503
    PythonNotAvailable = "PYTHON_NOT_AVAILABLE", 501;
    JavascriptNotAvailable = "JAVASCRIPT_NOT_AVAILABLE", 501;
    ServiceNotResponding = "SERVICE_NOT_RESPONDING", 502;
    GitNetworkError = "GIT_NETWORK_ERROR", 502;
    InterpreterNotReady = "INTERPRETER_NOT_READY", 503;
    OpencodeStartupFailed = "OPENCODE_STARTUP_FAILED", 503;
    RpcTransportError = "RPC_TRANSPORT_ERROR", 503;
    ContainerUnavailable = "CONTAINER_UNAVAILABLE", 503;
    // 500
    NoSpace = "NO_SPACE", 500;
    TooManyFiles = "TOO_MANY_FILES", 500;
    TooManyLinks = "TOO_MANY_LINKS", 500;
    FilesystemError = "FILESYSTEM_ERROR", 500;
    CommandExecutionError = "COMMAND_EXECUTION_ERROR", 500;
    StreamStartError = "STREAM_START_ERROR", 500;
    ProcessError = "PROCESS_ERROR", 500;
    PortOperationError = "PORT_OPERATION_ERROR", 500;
    GitCloneFailed = "GIT_CLONE_FAILED", 500;
    GitCheckoutFailed = "GIT_CHECKOUT_FAILED", 500;
    GitOperationFailed = "GIT_OPERATION_FAILED", 500;
    BucketMountError = "BUCKET_MOUNT_ERROR", 500;
    BucketUnmountError = "BUCKET_UNMOUNT_ERROR", 500;
    S3fsMountError = "S3FS_MOUNT_ERROR", 500;
    BackupCreateFailed = "BACKUP_CREATE_FAILED", 500;
    BackupRestoreFailed = "BACKUP_RESTORE_FAILED", 500;
    CodeExecutionError = "CODE_EXECUTION_ERROR", 500;
    ProcessExitedBeforeReady = "PROCESS_EXITED_BEFORE_READY", 500;
    WatchStartError = "WATCH_START_ERROR", 500;
    WatchStopError = "WATCH_STOP_ERROR", 500;
    UnknownError = "UNKNOWN_ERROR", 500;
    InternalError = "INTERNAL_ERROR", 500;

    // hutch's own.
    SandboxNotFound = "SANDBOX_NOT_FOUND", 404;
    SandboxAlreadyExists = "SANDBOX_ALREADY_EXISTS", 409;
    SandboxNameRetired = "SANDBOX_NAME_RETIRED", 410;
    SandboxCreatePending = "SANDBOX_CREATE_PENDING", 409;
    InvalidName = "INVALID_NAME", 400;
    InvalidPath = "INVALID_PATH", 400;
    InvalidInstanceType = "INVALID_INSTANCE_TYPE", 400;
    InvalidSleepAfter = "INVALID_SLEEP_AFTER", 400;
    InvalidEnv = "INVALID_ENV", 400;
    Unauthenticated = "UNAUTHENTICATED", 401;
    Forbidden = "FORBIDDEN", 403;
    ProjectNotFound = "PROJECT_NOT_FOUND", 404;
    ProjectAlreadyExists = "PROJECT_ALREADY_EXISTS", 409;
    SnapshotFailed = "SNAPSHOT_FAILED", 500;
    DriverUnavailable = "DRIVER_UNAVAILABLE", 503;
    CapacityExceeded = "CAPACITY_EXCEEDED", 503;
    ForbiddenEventType = "FORBIDDEN_EVENT_TYPE", 403;
    EventsTrimmed = "EVENTS_TRIMMED", 410;
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT", 409;
    StreamOffsetConflict = "STREAM_OFFSET_CONFLICT", 409;
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", 413;
    MethodNotFound = "METHOD_NOT_FOUND", 404;
    KeyNotFound = "KEY_NOT_FOUND", 404;
}

impl serde::Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for ErrorCode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_code_reads_back_from_its_text() {
        for code in ErrorCode::ALL {
            assert_eq!(code.as_str().parse::<ErrorCode>().unwrap(), *code);
        }
    }

    #[test]
    fn the_official_api_has_sixty_eight_codes() {
        let ours = ErrorCode::ALL
            .iter()
            .position(|code| *code == ErrorCode::SandboxNotFound);
        assert_eq!(ours, Some(68));
    }
}
