//! How a server is set up.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use hutch_drivers::CpuLimit;
use hutch_protocol::InstanceType;

/// What `hutch serve` can be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; default 127.0.0.1:7070. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where everything is kept. Made, mode 0700, if it does not exist.
    pub data_dir: PathBuf,
    /// The in-sandbox daemon; default `sandboxd` beside this program.
    pub sandboxd: Option<PathBuf>,
    /// Whether an instance type's CPU is a share that may burst, or a cap.
    pub cpu: CpuLimit,
    /// Host names that requests may address besides IP addresses and
    /// `localhost`.
    pub allowed_hosts: Vec<String>,
    /// The most sandboxes of a size that may be awake; sizes that are not named
    /// keep their defaults.
    pub max_instances: Vec<(InstanceType, usize)>,
    /// How long a snapshot can be restored after it was saved; `None` is for
    /// ever. Default 90 days. Snapshots that are there keep what they have.
    pub snapshot_life: Option<Duration>,
    /// Connections that may be open.
    pub connections: usize,
    /// Connections that may be open before they have authenticated.
    pub unauthenticated: usize,
}

impl Options {
    /// The defaults for a data directory.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7070)),
            data_dir: data_dir.into(),
            sandboxd: None,
            cpu: CpuLimit::Share,
            allowed_hosts: Vec::new(),
            max_instances: Vec::new(),
            snapshot_life: hutch_snapshots::Settings::default().ttl,
            connections: 4096,
            unauthenticated: 128,
        }
    }
}
