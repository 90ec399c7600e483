//! How the native driver is set up.

use std::ffi::OsString;
use std::path::PathBuf;

use hutch_protocol::Generation;

use crate::CpuLimit;

/// What the native driver needs to know.
#[derive(Clone, Debug)]
pub struct NativeOptions {
    /// The server's data directory.
    pub data_dir: PathBuf,
    /// The in-sandbox daemon's binary on the host.
    pub sandboxd: PathBuf,
    /// The spawner's command, less `--data-dir D`: normally the running
    /// program and `spawner`.
    pub spawner: Vec<OsString>,
    /// The generation of this server. The spawner refuses older ones.
    pub generation: Generation,
    /// How many boots are prepared ahead, 0–8.
    pub parked: usize,
    /// Whether CPU is a share or also a cap.
    pub cpu: CpuLimit,
    /// Where prepared images are kept; in the data directory if not given.
    pub image_dir: Option<PathBuf>,
}

impl NativeOptions {
    /// The ordinary set-up: this program is the spawner, two boots are
    /// prepared ahead.
    #[must_use]
    pub fn new(
        data_dir: impl Into<PathBuf>,
        sandboxd: impl Into<PathBuf>,
        generation: Generation,
    ) -> Self {
        Self {
            data_dir: data_dir.into(),
            sandboxd: sandboxd.into(),
            // The link keeps naming the running file after an upgrade.
            spawner: vec!["/proc/self/exe".into(), "spawner".into()],
            generation,
            parked: 2,
            cpu: CpuLimit::Share,
            image_dir: None,
        }
    }
}
