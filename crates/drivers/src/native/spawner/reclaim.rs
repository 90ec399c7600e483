//! Removing what a spawner that was killed left behind.
//!
//! The lock says that no other spawner of this data directory runs, so
//! whatever carries its id is nobody's.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::uid_range;
use crate::native::cgroup::{self, Hierarchies};
use crate::native::data_dir::DataDir;

/// How long killed processes may take to go.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the sockets of boots are.
pub const BOOTS: &str = "boots";

/// Kills and removes everything that carries the data directory's id.
pub fn all(data: &DataDir, hierarchies: &Hierarchies) -> io::Result<()> {
    cgroup::reclaim(hierarchies, &data.group(), Instant::now() + PATIENCE)?;
    match fs::remove_dir_all(data.run().join(BOOTS)) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        _ => {}
    }
    uid_range::free_all(&data.id)
}
