//! The admin key: whoever has it may do everything.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};

use crate::ServeError;

/// The key's file name within the data directory.
pub const KEY_FILE: &str = "admin.key";

/// The admin key, kept only as a hash.
pub(crate) struct AdminKey(blake3::Hash);

impl AdminKey {
    /// Reads the key, making a random one (mode 0600) at the first start.
    pub(crate) fn load_or_make(root: &Path) -> Result<Self, ServeError> {
        let path = root.join(KEY_FILE);
        let failed = || ServeError::data_dir(&path);
        if !path.try_exists().map_err(failed())? {
            let text = random_key().map_err(failed())?;
            write_new(&path, text.expose_secret().as_bytes(), 0o600).map_err(failed())?;
        }
        let file = File::open(&path).map_err(failed())?;
        let mode = file.metadata().map_err(failed())?.permissions().mode();
        if mode & 0o077 != 0 {
            let reason = format!(
                "others may read it (mode {:o}); run chmod 600 on it",
                mode & 0o777
            );
            return Err(ServeError::Damaged { path, reason });
        }
        let mut text = String::new();
        file.take(4096)
            .read_to_string(&mut text)
            .map_err(failed())?;
        let text = SecretString::from(text);
        let key = text.expose_secret().trim();
        if key.len() < 16 {
            let reason =
                "it is shorter than 16 characters; remove it to have a new one made".into();
            return Err(ServeError::Damaged { path, reason });
        }
        Ok(Self(blake3::hash(key.as_bytes())))
    }

    /// Whether the token is the key; takes as long either way.
    pub(crate) fn matches(&self, token: &SecretString) -> bool {
        // Comparing two hashes of this type takes constant time.
        blake3::hash(token.expose_secret().as_bytes()) == self.0
    }
}

fn random_key() -> io::Result<SecretString> {
    let mut bytes = [0u8; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(SecretString::from(format!("hutch_{hex}\n")))
}

/// Writes a file that must not exist yet, durably, under its final name only
/// when it is whole.
pub(crate) fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let aside = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&aside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    let parent = path.parent().unwrap_or(Path::new("/"));
    File::open(parent)?.sync_all()
}
