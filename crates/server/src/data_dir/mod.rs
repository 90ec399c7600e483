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
        check_database(&root)?;
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn snapshots(&self) -> PathBuf {
        self.root.join("snapshots")
    }
}

/// A directory that holds sandboxes but no database has lost it. A new one
/// would know none of them, and people would take their work for gone.
fn check_database(root: &Path) -> Result<(), ServeError> {
    let path = root.join(hutch_streams::DATABASE_FILE);
    if path.try_exists().map_err(ServeError::data_dir(&path))? {
        return Ok(());
    }
    let holds = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten();
        entries.flatten().any(|entry| entry.path().is_dir())
    };
    if holds("volumes") || holds("snapshots/snapshots") {
        let reason = "it is missing, though there are volumes or snapshots of its sandboxes; \
                      bring it back from a backup, or name another data directory"
            .to_owned();
        return Err(ServeError::Damaged { path, reason });
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_lost_database_is_noticed_while_there_is_work() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("data");
        DataDir::open(&root).unwrap();
        fs::create_dir_all(root.join("volumes/prj_x/main")).unwrap();
        let error = DataDir::open(&root).unwrap_err();
        assert!(error.to_string().contains("it is missing"), "{error}");
        fs::write(root.join(hutch_streams::DATABASE_FILE), "").unwrap();
        DataDir::open(&root).unwrap();
    }
}
