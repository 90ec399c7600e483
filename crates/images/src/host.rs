//! The image `host`: three read-only layers made from the machine itself.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::{ImageError, etc, mask};

/// The layout of a prepared image; another number is prepared anew.
const VERSION: u32 = 1;

/// The prepared image. Its directories belong to host root; a sandbox sees
/// them through an identity-mapped mount, so that its own root owns them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostImage {
    /// The machine's `/usr`, the lowest layer.
    pub usr: PathBuf,
    /// A layer above it that hides what only privileged users may read.
    pub usr_mask: PathBuf,
    /// The lowest layer of `/etc`.
    pub etc: PathBuf,
}

impl HostImage {
    /// Prepares the image below `dir`, or finds it prepared. Reads all of
    /// `/usr` the first time and after the machine's packages changed; a
    /// cold disk makes that take seconds.
    ///
    /// # Errors
    /// The step and the file that failed; a half-made image is never used.
    pub fn prepare(dir: &Path) -> Result<Self, ImageError> {
        make_private(dir)?;
        let name = format!("host-{VERSION}-{:016x}", fingerprint());
        let ready = dir.join(&name);
        if !ready.join("complete").exists() {
            let draft = dir.join(format!("{name}.draft-{}", std::process::id()));
            remove(&draft)?;
            make_private(&draft)?;
            mask::build(Path::new("/usr"), &draft.join("usr-mask"))?;
            etc::build(Path::new("/etc"), &draft.join("etc"))?;
            fs::write(draft.join("complete"), b"").map_err(ImageError::at("write", &draft))?;
            // Two spawners may prepare at once: the first to rename wins.
            if let Err(cause) = fs::rename(&draft, &ready) {
                remove(&draft)?;
                if !ready.join("complete").exists() {
                    return Err(ImageError::at("rename", &draft)(cause));
                }
            }
        }
        Ok(Self {
            usr: PathBuf::from("/usr"),
            usr_mask: ready.join("usr-mask"),
            etc: ready.join("etc"),
        })
    }
}

fn make_private(dir: &Path) -> Result<(), ImageError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(ImageError::at("create", dir))
}

fn remove(dir: &Path) -> Result<(), ImageError> {
    match fs::remove_dir_all(dir) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(ImageError::at("remove", dir)(cause))
        }
        _ => Ok(()),
    }
}

/// A number that changes with the machine's packages: FNV-1a over the times
/// and sizes of what a package manager touches.
fn fingerprint() -> u64 {
    let mut paths: Vec<PathBuf> = [
        "/usr",
        "/etc",
        "/etc/passwd",
        "/etc/ld.so.cache",
        "/etc/alternatives",
        "/etc/ssl/certs",
        "/var/lib/dpkg/status",
        "/var/lib/rpm",
        "/lib/apk/db/installed",
        "/var/lib/pacman/local",
    ]
    .map(PathBuf::from)
    .to_vec();
    for dir in ["/usr", "/usr/local", "/usr/lib", "/usr/share"] {
        if let Ok(entries) = fs::read_dir(dir) {
            paths.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    paths.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for path in paths {
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        mix(path.as_os_str().as_encoded_bytes());
        mix(&found.ctime().to_le_bytes());
        mix(&found.ctime_nsec().to_le_bytes());
        mix(&found.ino().to_le_bytes());
    }
    hash
}
