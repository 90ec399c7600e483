//! Where each setting comes from: option, variable, file, default. Options and
//! variables are read by clap; this adds the file and the defaults.

mod file;
mod snapshot_life;

use crate::{args::GlobalArgs, failure::Failure};
use hutch_protocol::InstanceType;
use secrecy::SecretString;
pub use snapshot_life::SnapshotLife;
use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

/// Address of a server on the same machine with its defaults.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7070";
/// Project that each server has from its first start.
pub const DEFAULT_PROJECT: &str = "default";

/// The settings of one run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Project, by slug or id.
    pub project: String,
    /// Whether the user named the project.
    pub project_given: bool,
    /// Server address as the user gave it, or the default.
    pub url: String,
    /// Whether the user named the server.
    pub url_given: bool,
    /// Token the user gave.
    token: Option<SecretString>,
    /// Data directory of the server.
    pub data_dir: PathBuf,
    /// The most sandboxes of a type that may be awake, from the file.
    pub max_instances: Vec<(InstanceType, usize)>,
    /// How long snapshots are kept, from the file.
    pub snapshot_life: Option<SnapshotLife>,
    /// Sessions that may be open, from the file.
    pub connections: Option<NonZeroUsize>,
    /// Sessions that may wait for their key, from the file.
    pub unauthenticated: Option<NonZeroUsize>,
    /// Machine-readable output.
    pub json: bool,
}

impl Settings {
    /// Layers what clap read over the file and the defaults.
    pub fn load(global: &GlobalArgs) -> Result<Self, Failure> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let file = match file::path(
            std::env::var_os("HUTCH_CONFIG"),
            std::env::var_os("XDG_CONFIG_HOME"),
            home.as_deref(),
        ) {
            Some(path) => file::read(&path)?,
            None => file::File::default(),
        };
        let root = rustix::process::geteuid().is_root();
        Self::layer(global, file, root, home.as_deref())
    }

    fn layer(
        global: &GlobalArgs,
        file: file::File,
        root: bool,
        home: Option<&Path>,
    ) -> Result<Self, Failure> {
        let filled = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
        let data_dir = match global.data_dir.clone().or(file.data_dir) {
            Some(dir) => dir,
            None => default_data_dir(root, home)?,
        };
        let url = filled(&global.url).or(file.url);
        let project = filled(&global.project).or(file.project);
        Ok(Self {
            project_given: project.is_some(),
            project: project.unwrap_or_else(|| DEFAULT_PROJECT.to_owned()),
            url_given: url.is_some(),
            url: url.unwrap_or_else(|| DEFAULT_URL.to_owned()),
            token: filled(&global.token).or(file.token).map(SecretString::from),
            data_dir,
            max_instances: file.max_instances.into_iter().collect(),
            snapshot_life: file.snapshot_life,
            connections: file.connections,
            unauthenticated: file.unauthenticated,
            json: global.json,
        })
    }

    /// The token that was given, or the one in the data directory's key file.
    pub fn token(&self) -> Result<SecretString, Failure> {
        match &self.token {
            Some(token) => Ok(token.clone()),
            None => key_file(&self.data_dir),
        }
    }

    /// The same settings, pointed at a fresh server, which has one project.
    #[must_use]
    pub fn at(&self, url: String, data_dir: PathBuf) -> Self {
        Self {
            project: DEFAULT_PROJECT.to_owned(),
            project_given: false,
            url,
            url_given: true,
            token: None,
            data_dir,
            ..self.clone()
        }
    }
}

/// Reads the key that the server wrote at its first start.
fn key_file(data_dir: &Path) -> Result<SecretString, Failure> {
    let path = data_dir.join("admin.key");
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(SecretString::from(text.trim().to_owned())),
        Err(error) => Err(Failure::new(
            "UNAUTHENTICATED",
            format!(
                "no token: cannot read {} ({error}); start `hutch serve` first, or give --token, HUTCH_TOKEN or --data-dir",
                path.display()
            ),
        )),
    }
}

fn default_data_dir(root: bool, home: Option<&Path>) -> Result<PathBuf, Failure> {
    match (root, home) {
        (true, _) => Ok(PathBuf::from("/var/lib/hutch")),
        (false, Some(home)) => Ok(home.join(".local/share/hutch")),
        (false, None) => Err(Failure::usage(
            "no data directory: HOME is not set; give --data-dir or HUTCH_DATA_DIR",
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use secrecy::ExposeSecret;

    fn file(text: &str) -> file::File {
        file::parse(text, Path::new("config.toml")).expect("a valid file")
    }

    #[test]
    fn options_win_over_the_file() {
        let global = GlobalArgs {
            project: Some("typed".into()),
            ..GlobalArgs::default()
        };
        let settings = Settings::layer(
            &global,
            file("project = \"filed\"\nurl = \"http://h:1\""),
            true,
            None,
        )
        .unwrap();
        assert_eq!(settings.project, "typed");
        assert_eq!(settings.url, "http://h:1");
    }

    #[test]
    fn an_empty_variable_counts_as_absent() {
        let global = GlobalArgs {
            project: Some(String::new()),
            ..GlobalArgs::default()
        };
        let settings = Settings::layer(&global, file::File::default(), true, None).unwrap();
        assert_eq!(settings.project, "default");
    }

    #[test]
    fn defaults_depend_on_who_runs() {
        let global = GlobalArgs::default();
        let root = Settings::layer(&global, file::File::default(), true, None).unwrap();
        assert_eq!(root.data_dir, Path::new("/var/lib/hutch"));
        let user = Settings::layer(
            &global,
            file::File::default(),
            false,
            Some(Path::new("/home/u")),
        )
        .unwrap();
        assert_eq!(user.data_dir, Path::new("/home/u/.local/share/hutch"));
        assert!(Settings::layer(&global, file::File::default(), false, None).is_err());
    }

    #[test]
    fn the_key_file_is_read_without_its_newline() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("admin.key"), "secret\n").unwrap();
        assert_eq!(key_file(dir.path()).unwrap().expose_secret(), "secret");
    }

    #[test]
    fn a_missing_key_file_names_the_way_out() {
        let failure = key_file(Path::new("/nonexistent")).unwrap_err();
        assert_eq!(failure.code, "UNAUTHENTICATED");
        assert!(failure.message.contains("/nonexistent/admin.key"));
    }
}
