//! The data directory: its layout, its id and its admin key.

mod key;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(crate) use key::AdminKey;
pub use key::KEY_FILE;

use crate::ServeError;

/// The version of the layout that this code reads and writes.
const LAYOUT: &str = "hutch data directory, layout 1\n";

/// An opened data directory.
#[derive(Debug)]
pub(crate) struct DataDir {
    root: PathBuf,
}

impl DataDir {
    /// Opens or makes the directory. Nobody but the owner may look inside.
    pub(crate) fn open(root: &Path) -> Result<Self, ServeError> {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root);
        made.map_err(ServeError::data_dir(root))?;
        // Relative paths would move with the working directory.
        let root = std::path::absolute(root).map_err(ServeError::data_dir(root))?;
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(&root, mode).map_err(ServeError::data_dir(&root))?;
        check_layout(&root)?;
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn snapshots(&self) -> PathBuf {
        self.root.join("snapshots")
    }
}

fn check_layout(root: &Path) -> Result<(), ServeError> {
    let path = root.join("VERSION");
    match fs::read_to_string(&path) {
        Ok(found) if found == LAYOUT => Ok(()),
        Ok(found) => Err(ServeError::Damaged {
            path,
            reason: format!(
                "it says {:?}, this hutch knows {:?}; use the hutch that made it",
                found.chars().take(60).collect::<String>(),
                LAYOUT.trim_end()
            ),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            key::write_new(&path, LAYOUT.as_bytes(), 0o600).map_err(ServeError::data_dir(&path))
        }
        Err(error) => Err(ServeError::data_dir(&path)(error)),
    }
}
