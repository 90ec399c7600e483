//! The parts of a data directory that the server and the spawner share.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A data directory with its id.
#[derive(Clone, Debug)]
pub struct DataDir {
    /// Its absolute path.
    pub path: PathBuf,
    /// 16 hexadecimal digits, chosen once. Everything that is made on the host
    /// for this directory carries it.
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
                let mut bytes = [0_u8; 8];
                rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
                let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
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
