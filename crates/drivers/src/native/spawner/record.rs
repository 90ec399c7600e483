//! What a spawner keeps on disk of each boot that runs, for the one after it.
//!
//! A record proves nothing by itself: see [`crate::native::proof`].

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

use crate::native::data_dir;
use crate::native::protocol::Boot;

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;
const FILE: &str = "boot.json";

/// One running boot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// [`VERSION`].
    pub v: u32,
    /// The boot.
    pub boot: Boot,
    /// Its range of host ids.
    pub range: u32,
    /// The pipe that its daemon writes to.
    pub output: Option<Pipe>,
}

/// Which pipe it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipe {
    dev: u64,
    ino: u64,
}

impl Pipe {
    /// The pipe behind a descriptor, or nothing if it is something else.
    pub fn of(stat: &Stat) -> Option<Self> {
        (FileType::from_raw_mode(stat.st_mode) == FileType::Fifo).then_some(Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
        })
    }
}

#[derive(Deserialize)]
struct Head {
    v: u32,
}

impl Record {
    /// Writes it into the boot's directory. It need not outlive a power loss:
    /// neither does the boot.
    pub fn write(&self, boots: &Path) -> io::Result<()> {
        let dir = boots.join(&self.boot.slot);
        let draft = dir.join("boot.draft");
        fs::write(&draft, serde_json::to_vec(self)?)?;
        fs::rename(&draft, dir.join(FILE))
    }

    /// Every record below `boots`, with the name of its directory. What cannot
    /// be read is left out: nothing can be proven of it.
    ///
    /// # Errors
    /// A newer hutch wrote one: nothing may be touched then.
    pub fn read_all(boots: &Path) -> io::Result<Vec<(String, Self)>> {
        let entries = match fs::read_dir(boots) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let Ok(text) = fs::read(entry.path().join(FILE)) else {
                continue;
            };
            let version = serde_json::from_slice::<Head>(&text).map_or(0, |head| head.v);
            refuse_newer(version, VERSION, "a running sandbox")?;
            if let Ok(record) = serde_json::from_slice(&text) {
                found.push((name, record));
            }
        }
        Ok(found)
    }
}

/// Refuses what a newer release wrote.
pub fn refuse_newer(version: u32, known: u32, what: &str) -> io::Result<()> {
    if version <= known {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "{what} is on record in version {version}, and this hutch reads up to {known}: \
             run the newer release that wrote it; nothing was changed"
        ),
    ))
}

/// Remembers the newest generation that was obeyed, so that a spawner that
/// takes over refuses the same servers.
pub fn write_generation(run: &Path, generation: u64) -> io::Result<()> {
    data_dir::write(&run.join("generation"), &generation.to_string())
}

/// The newest generation that was obeyed; 0 if none is on record.
pub fn read_generation(run: &Path) -> u64 {
    let text = fs::read_to_string(run.join("generation")).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_newer_record_is_refused_and_a_torn_one_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let boot = |name: &str, text: &str| {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join(FILE), text).unwrap();
        };
        boot("torn", r#"{"v":1,"boot":{"iden"#);
        assert!(Record::read_all(dir.path()).unwrap().is_empty());
        boot("newer", r#"{"v":2,"boot":"of another shape"}"#);
        let words = Record::read_all(dir.path()).unwrap_err().to_string();
        assert!(words.contains("version 2") && words.contains("nothing was changed"));
        assert!(
            Record::read_all(&dir.path().join("never"))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn the_generation_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_generation(dir.path()), 0);
        write_generation(dir.path(), 12).unwrap();
        assert_eq!(read_generation(dir.path()), 12);
    }
}
