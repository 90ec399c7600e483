//! The configuration file: `$HUTCH_CONFIG`, else `hutch/config.toml` below
//! `$XDG_CONFIG_HOME` or `~/.config`. All keys are optional; unknown ones are
//! refused, so that a typing error does not go unseen.

use super::SnapshotLife;
use crate::failure::Failure;
use hutch_protocol::InstanceType;
use serde::Deserialize;
use std::{
    collections::HashMap,
    ffi::OsString,
    io::ErrorKind,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

/// What the file can set.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Project, by slug or id.
    pub project: Option<String>,
    /// Server address.
    pub url: Option<String>,
    /// Access token.
    pub token: Option<String>,
    /// Data directory of the server.
    pub data_dir: Option<PathBuf>,
    /// The most sandboxes of a type that may be awake.
    #[serde(default)]
    pub max_instances: HashMap<InstanceType, usize>,
    /// How long snapshots are kept.
    pub snapshot_life: Option<SnapshotLife>,
    /// Sessions that may be open.
    pub connections: Option<NonZeroUsize>,
    /// Sessions that may wait for their key.
    pub unauthenticated: Option<NonZeroUsize>,
}

/// Where the file is looked for.
pub fn path(
    config: Option<OsString>,
    xdg_config_home: Option<OsString>,
    home: Option<&Path>,
) -> Option<PathBuf> {
    if let Some(path) = config.filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(path));
    }
    xdg_config_home
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .or_else(|| home.map(|home| home.join(".config")))
        .map(|dir| dir.join("hutch/config.toml"))
}

/// Reads the file; one that does not exist is empty.
pub fn read(path: &Path) -> Result<File, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(File::default()),
        Err(error) => Err(Failure::usage(format!(
            "cannot read {}: {error}",
            path.display()
        ))),
    }
}

/// Parses the text of the file at `path`.
pub fn parse(text: &str, path: &Path) -> Result<File, Failure> {
    toml::from_str(text).map_err(|error| {
        Failure::usage(format!(
            "{}: {}; known keys are project, url, token, data_dir, max_instances, snapshot_life, connections and unauthenticated",
            path.display(),
            error.message()
        ))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_place_is_chosen_in_order() {
        let home = Path::new("/h");
        assert_eq!(
            path(Some("/c".into()), Some("/x".into()), Some(home)).unwrap(),
            Path::new("/c")
        );
        assert_eq!(
            path(None, Some("/x".into()), Some(home)).unwrap(),
            Path::new("/x/hutch/config.toml")
        );
        assert_eq!(
            path(None, None, Some(home)).unwrap(),
            Path::new("/h/.config/hutch/config.toml")
        );
        assert_eq!(path(None, None, None), None);
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let failure = parse("projct = \"a\"", Path::new("f")).unwrap_err();
        assert!(failure.message.contains("projct"), "{}", failure.message);
    }

    #[test]
    fn limits_are_read_by_type() {
        let text = "[max_instances]\n\"standard-1\" = 3\nlite = 0";
        let file = parse(text, Path::new("f")).unwrap();
        assert_eq!(file.max_instances[&InstanceType::Standard1], 3);
        assert_eq!(file.max_instances[&InstanceType::Lite], 0);
        let file = parse("connections = 7\nunauthenticated = 3", Path::new("f")).unwrap();
        let given = (file.connections, file.unauthenticated);
        assert_eq!(given, (NonZeroUsize::new(7), NonZeroUsize::new(3)));
        assert!(parse("connections = 0", Path::new("f")).is_err());
        let failure = parse("[max_instances]\nhuge = 1", Path::new("f")).unwrap_err();
        assert!(failure.message.contains("huge"), "{}", failure.message);
    }

    #[test]
    fn a_missing_file_is_empty() {
        assert!(read(Path::new("/nonexistent/f")).unwrap().url.is_none());
    }
}
