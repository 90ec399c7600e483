//! The parts of a data directory that the server and the spawner share.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A data directory with its id.
#[derive(Clone, Debug)]
pub struct DataDir {
    /// Its absolute path.
    pub path: PathBuf,
    /// 16 hexadecimal digits of chance. Everything that is made on the host for
    /// this directory carries it. A copy of the directory gets another one, so
    /// that it does not take the original's sandboxes for its own.
    pub id: String,
}

impl DataDir {
    /// Opens the directory, giving it an id if it has none.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        private_dir(&path)?;
        private_dir(&path.join("run"))?;
        let file = path.join("id");
        let id = match read_id(&file)? {
            Some(id) => id,
            None => {
                let id = random_id()?;
                // Linked into place, so that two first starts agree.
                let draft = path.join(format!("id.{}", std::process::id()));
                let mut made = fs::OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(&draft)?;
                made.write_all(id.as_bytes())?;
                made.sync_all()?;
                let linked = fs::hard_link(&draft, &file);
                fs::remove_file(&draft)?;
                match linked {
                    Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(cause);
                    }
                    _ => read_id(&file)?.ok_or(io::ErrorKind::InvalidData)?,
                }
            }
        };
        let id = settle(&path, id)?;
        Ok(Self { path, id })
    }

    /// Where sockets, locks and records of running boots are.
    pub fn run(&self) -> PathBuf {
        self.path.join("run")
    }

    /// The name of this directory's control groups.
    pub fn group(&self) -> String {
        format!("hutch-{}", self.id)
    }
}

/// Makes a directory that only its owner may enter, if it is not there.
pub fn private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Binds the id to where the directory is, and takes a new one if it was
/// copied from elsewhere.
fn settle(path: &Path, id: String) -> io::Result<String> {
    let own = fs::metadata(path)?;
    let file = path.join("id.place");
    let place = |id: &str| format!("{id} {:x} {:x}\n", own.dev(), own.ino());
    match fs::read_to_string(&file) {
        Ok(found) if found == place(&id) => return Ok(id),
        Ok(_) => {}
        // As the release before left it.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            write(&file, &place(&id))?;
            return Ok(id);
        }
        Err(cause) => return Err(cause),
    }
    let id = random_id()?;
    write(&path.join("id"), &id)?;
    write(&file, &place(&id))?;
    Ok(id)
}

fn random_id() -> io::Result<String> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Replaces a small file as a whole.
pub fn write(file: &Path, text: &str) -> io::Result<()> {
    let draft = file.with_extension(format!("draft-{}", std::process::id()));
    let mut made = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    made.write_all(text.as_bytes())?;
    made.sync_all()?;
    fs::rename(&draft, file)
}

fn read_id(file: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(id) if id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => Ok(Some(id)),
        Ok(_) => Err(io::Error::other(format!(
            "{} does not hold a data directory's id",
            file.display()
        ))),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_id_stays_and_a_copy_gets_another() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let id = DataDir::open(&one).unwrap().id;
        assert_eq!(DataDir::open(&one).unwrap().id, id);
        fs::create_dir(&two).unwrap();
        for name in ["id", "id.place"] {
            fs::copy(one.join(name), two.join(name)).unwrap();
        }
        let copied = DataDir::open(&two).unwrap().id;
        assert_ne!(copied, id);
        assert_eq!(DataDir::open(&two).unwrap().id, copied);
        assert_eq!(DataDir::open(&one).unwrap().id, id);
    }

    #[test]
    fn the_id_of_an_older_release_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("id"), "0123456789abcdef").unwrap();
        assert_eq!(DataDir::open(dir.path()).unwrap().id, "0123456789abcdef");
    }
}
