//! Hides what the world may not read below `/usr`.
//!
//! A sandbox's root owns every file of an identity-mapped tree, so permission
//! bits hold nothing back. Each file without read permission for others, and
//! each directory without read and search permission, is therefore covered by
//! a whiteout in a layer above.

use std::fs::{self, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};

use crate::ImageError;

/// Writes the layer `mask` for the tree `source`. Does not cross into other
/// file systems, as the mount of the tree does not either.
///
/// # Errors
/// The tree cannot be read or the layer cannot be written.
pub fn build(source: &Path, mask: &Path) -> Result<(), ImageError> {
    let root = metadata(source)?;
    make_like(mask, &root)?;
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        let dir = source.join(&below);
        let entries = fs::read_dir(&dir).map_err(ImageError::at("read", &dir))?;
        for entry in entries {
            let entry = entry.map_err(ImageError::at("read", &dir))?;
            let kind = entry
                .file_type()
                .map_err(ImageError::at("look at", &entry.path()))?;
            if kind.is_symlink() {
                continue;
            }
            let path = below.join(entry.file_name());
            let found = match entry.metadata() {
                Ok(found) => found,
                // A package manager may be at work; what is gone needs no mask.
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => continue,
                Err(cause) => return Err(ImageError::at("look at", &entry.path())(cause)),
            };
            if found.dev() != root.dev() {
                continue;
            }
            if is_private(&found) {
                hide(source, mask, &path)?;
            } else if kind.is_dir() {
                pending.push(path);
            }
        }
    }
    Ok(())
}

fn is_private(found: &Metadata) -> bool {
    let needed = if found.is_dir() { 0o005 } else { 0o004 };
    let open_kind = found.is_dir() || found.is_file();
    !open_kind || found.mode() & needed != needed
}

fn hide(source: &Path, mask: &Path, path: &Path) -> Result<(), ImageError> {
    let mut parent = PathBuf::new();
    for part in path.parent().into_iter().flat_map(Path::components) {
        parent.push(part);
        let copy = mask.join(&parent);
        if !copy.exists() {
            make_like(&copy, &metadata(&source.join(&parent))?)?;
        }
    }
    let target = mask.join(path);
    rustix::fs::mknodat(CWD, &target, FileType::CharacterDevice, Mode::empty(), 0)
        .map_err(|cause| ImageError::at("hide", &target)(cause.into()))
}

/// Makes a directory that shows the same owner and mode as `like`, since the
/// upper layer's are the ones that a merged directory shows.
fn make_like(dir: &Path, like: &Metadata) -> Result<(), ImageError> {
    fs::DirBuilder::new()
        .mode(0o755)
        .create(dir)
        .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(like.mode() & 0o7777)))
        .and_then(|()| std::os::unix::fs::chown(dir, Some(like.uid()), Some(like.gid())))
        .map_err(ImageError::at("create", dir))
}

fn metadata(path: &Path) -> Result<Metadata, ImageError> {
    fs::symlink_metadata(path).map_err(ImageError::at("look at", path))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::FileTypeExt;

    use super::*;

    /// Needs root, as the spawner has it: whiteouts are device nodes.
    #[test]
    fn what_the_world_may_not_read_is_covered_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let (source, mask) = (dir.path().join("usr"), dir.path().join("mask"));
        for (path, mode) in [
            ("bin/tool", 0o755),
            ("bin/setuid", 0o4755),
            ("bin/private", 0o4750),
            ("lib/keys/key", 0o644),
            ("share/a/b/secret", 0o640),
        ] {
            let file = source.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "x").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(source.join("lib/keys"), fs::Permissions::from_mode(0o750)).unwrap();
        fs::set_permissions(source.join("share/a"), fs::Permissions::from_mode(0o1775)).unwrap();
        build(&source, &mask).unwrap();
        for hidden in ["bin/private", "lib/keys", "share/a/b/secret"] {
            let found = fs::symlink_metadata(mask.join(hidden)).unwrap();
            assert!(found.file_type().is_char_device(), "{hidden}");
            assert_eq!(found.rdev(), 0, "{hidden}");
        }
        assert!(!mask.join("bin/tool").exists() && !mask.join("bin/setuid").exists());
        let merged = fs::metadata(mask.join("share/a")).unwrap();
        assert_eq!(merged.mode() & 0o7777, 0o1775);
    }
}
