//! What a spawner is set up with.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::Arguments;
use super::seccomp::Filters;
use crate::native::cgroup::Hierarchies;
use crate::native::data_dir::DataDir;
use crate::native::{build, proof};

/// What stays the same for the spawner's life.
pub struct Setup {
    /// Whose boots these are.
    pub data: DataDir,
    /// Where groups are made.
    pub hierarchies: Hierarchies,
    /// The compiled filters.
    pub filters: Filters,
    /// Where the root's layers are prepared.
    pub images: PathBuf,
    /// Held for life: one spawner for each data directory.
    pub lock: File,
    /// What this program was started with.
    pub arguments: Arguments,
    /// The kernel's id of the machine's own boot.
    pub machine: String,
    /// Which build this program is.
    pub build: String,
}

impl Setup {
    /// Completes what a spawner needs to know.
    pub fn new(
        arguments: Arguments,
        data: DataDir,
        hierarchies: Hierarchies,
        filters: Filters,
        lock: File,
    ) -> io::Result<Self> {
        let images = arguments.image_dir.clone();
        Ok(Self {
            images: images.unwrap_or_else(|| data.path.join("images")),
            machine: proof::machine()?,
            build: build::own()?,
            data,
            hierarchies,
            filters,
            lock,
            arguments,
        })
    }
}
