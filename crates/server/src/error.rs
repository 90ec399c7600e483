//! Why a server does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A server could not start. Each message names the object and the way out.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The data directory cannot be used.
    #[error("cannot use the data directory {path}: {cause}; name another with --data-dir")]
    DataDir {
        /// The directory or the file in it.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A file of the data directory does not hold what it should.
    #[error("{path} is not what this hutch wrote: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The event store cannot be opened.
    #[error("{0}")]
    Streams(#[from] hutch_streams::OpenError),
    /// The event store cannot be read or written.
    #[error("{0}")]
    Store(#[from] hutch_streams::StoreError),
    /// The snapshot store cannot be opened.
    #[error("the snapshot store cannot be opened: {0}")]
    Snapshots(#[from] hutch_snapshots::SnapshotError),
    /// The volumes cannot be opened.
    #[error("the volumes cannot be opened: {0}")]
    Volumes(String),
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {cause}; {}name another address with --listen",
        if cause.kind() == io::ErrorKind::AddrInUse { "is another server running? " } else { "" }
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// What an earlier server left could not be taken over.
    #[error("the sandboxes could not be taken over: {0}")]
    Recover(#[from] hutch_protocol::ApiError),
}

impl ServeError {
    pub(crate) fn data_dir(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::DataDir { path, cause }
    }
}
