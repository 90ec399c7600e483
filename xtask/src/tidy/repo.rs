//! What the checks look at: the tracked text files and the workspace's packages.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A tracked text file.
pub struct File {
    /// Relative to the repository's root.
    pub path: String,
    /// The whole content.
    pub text: String,
}

/// A package of the workspace.
pub struct Package {
    /// Its name in Cargo.toml.
    pub name: String,
    /// Its Cargo.toml, relative to the repository's root.
    pub manifest: String,
    /// The SPDX expression of its licence.
    pub licence: String,
    /// Names of what it depends on, tests aside.
    pub dependencies: Vec<String>,
    /// Names of what its tests depend on.
    pub dev_dependencies: Vec<String>,
}

/// The repository as the checks see it.
#[derive(Default)]
pub struct Repo {
    /// Tracked text files, and those about to be tracked.
    pub files: Vec<File>,
    /// The workspace's packages.
    pub packages: Vec<Package>,
    /// Folders of this one machine that no tracked file may name.
    pub machine_paths: Vec<String>,
}

impl Repo {
    /// Reads the repository that the current directory is in.
    pub fn open() -> Result<Self, String> {
        let root = PathBuf::from(output("git", &["rev-parse", "--show-toplevel"])?.trim());
        let listing = output(
            "git",
            &[
                "-C",
                &root.to_string_lossy(),
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ],
        )?;
        let mut files = Vec::new();
        for path in listing.split('\0').filter(|path| !path.is_empty()) {
            // A file that is removed but still in the index, and binary files, are skipped.
            if let Ok(text) = std::fs::read_to_string(root.join(path)) {
                files.push(File {
                    path: path.to_owned(),
                    text,
                });
            }
        }
        let metadata = output(
            "cargo",
            &["metadata", "--no-deps", "--offline", "--format-version=1"],
        )?;
        Ok(Self {
            files,
            packages: packages(&metadata, &root)?,
            machine_paths: machine_paths(&root),
        })
    }

    /// The Rust sources.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The Markdown documents.
    pub fn documents(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".md"))
    }
}

fn machine_paths(root: &Path) -> Vec<String> {
    let mut paths = vec![root.to_string_lossy().into_owned()];
    if let Ok(common) = output(
        "git",
        &["rev-parse", "--path-format=absolute", "--git-common-dir"],
    ) && let Some(main) = Path::new(common.trim()).parent()
    {
        paths.push(main.to_string_lossy().into_owned());
    }
    for variable in ["CARGO_HOME", "RUSTUP_HOME", "CARGO_TARGET_DIR"] {
        paths.extend(std::env::var(variable));
    }
    // A checkout in `/src` would ban a path that many files may well name.
    paths.retain(|path| path.matches('/').count() > 1);
    paths.sort();
    paths.dedup();
    paths
}

fn packages(metadata: &str, root: &Path) -> Result<Vec<Package>, String> {
    let metadata: serde_json::Value =
        serde_json::from_str(metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let mut packages = Vec::new();
    for package in array(&metadata["packages"]) {
        let manifest = Path::new(text(&package["manifest_path"]));
        let mut dependencies = Vec::new();
        let mut dev_dependencies = Vec::new();
        for dependency in array(&package["dependencies"]) {
            let name = text(&dependency["name"]).to_owned();
            match dependency["kind"].as_str() {
                Some("dev") => dev_dependencies.push(name),
                _ => dependencies.push(name),
            }
        }
        packages.push(Package {
            name: text(&package["name"]).to_owned(),
            manifest: manifest
                .strip_prefix(root)
                .unwrap_or(manifest)
                .to_string_lossy()
                .into_owned(),
            licence: text(&package["license"]).to_owned(),
            dependencies,
            dev_dependencies,
        });
    }
    Ok(packages)
}

fn array(value: &serde_json::Value) -> &[serde_json::Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} {}: {errors}", arguments.join(" ")));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{program}: {error}"))
}

#[cfg(test)]
pub mod fake {
    //! Repositories for the tests of the checks.

    use super::{File, Package, Repo};

    /// A repository of these files: path, text.
    pub fn repo(files: &[(&str, &str)]) -> Repo {
        let files = files.iter().map(|(path, text)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        });
        Repo {
            files: files.collect(),
            ..Repo::default()
        }
    }

    /// A package with these dependencies, tests aside.
    pub fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml"),
            licence: "Apache-2.0".to_owned(),
            dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
            dev_dependencies: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn metadata_tells_dependencies_of_tests_apart() {
        let metadata = r#"{"packages": [{"name": "a", "manifest_path": "/r/a/Cargo.toml",
            "license": "MIT", "dependencies": [{"name": "b", "kind": null},
            {"name": "c", "kind": "dev"}, {"name": "d", "kind": "build"}]}]}"#;
        let packages = packages(metadata, Path::new("/r")).unwrap();
        assert_eq!(packages[0].manifest, "a/Cargo.toml");
        assert_eq!(packages[0].dependencies, ["b", "d"]);
        assert_eq!(packages[0].dev_dependencies, ["c"]);
    }
}
