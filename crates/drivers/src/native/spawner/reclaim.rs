//! Removing what a spawner that was killed left behind.
//!
//! The lock says that no other spawner of this data directory runs, so
//! whatever carries its id and was not taken over is nobody's. Nothing
//! without that id is touched.

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
    all_but(data, hierarchies, &[], &[])?;
    match fs::remove_dir(data.run().join(BOOTS)) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

/// As [`all`], less the boots and ranges of host ids that are named.
pub fn all_but(
    data: &DataDir,
    hierarchies: &Hierarchies,
    names: &[&str],
    ranges: &[u32],
) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    cgroup::reclaim(hierarchies, &data.group(), names, deadline)?;
    let entries = match fs::read_dir(data.run().join(BOOTS)) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return uid_range::free_others(&data.id, ranges);
        }
        Err(cause) => return Err(cause),
    };
    for entry in entries {
        let entry = entry?;
        let is_kept = entry
            .file_name()
            .to_str()
            .is_some_and(|name| names.contains(&name));
        if is_kept {
            continue;
        }
        match fs::remove_dir_all(entry.path()) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
    }
    uid_range::free_others(&data.id, ranges)
}
