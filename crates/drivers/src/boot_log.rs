//! What the boots of one sandbox said, kept on the host.
//!
//! Two files of at most 256 KiB: `log`, and `log.1` before it. The daemon is
//! hostile, so the text may be anything; it is made safe where it is read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::SandboxKey;

/// How large one of the two files grows, in bytes.
pub const HALF: u64 = 256 * 1024;
/// The most that can be asked for at once, in bytes.
pub const WHOLE: usize = 2 * HALF as usize;

/// Where logs are, in a data directory.
pub const LOGS: &str = "logs";
const NOW: &str = "log";
const BEFORE: &str = "log.1";

/// The end of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTail {
    /// Whole lines where it was cut; control characters but tab and newline
    /// are replaced.
    pub text: String,
    /// Whether there is more before it, or was.
    pub truncated: bool,
}

/// The log of one sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootLog {
    logs: PathBuf,
    sandbox: SandboxKey,
}

impl BootLog {
    /// The log of `sandbox` in a data directory; nothing is made.
    #[must_use]
    pub fn of(data_dir: &Path, sandbox: &SandboxKey) -> Self {
        Self {
            logs: data_dir.join(LOGS),
            sandbox: sandbox.clone(),
        }
    }

    fn project(&self) -> PathBuf {
        self.logs.join(self.sandbox.project.as_str())
    }

    fn dir(&self) -> PathBuf {
        self.project().join(self.sandbox.name.as_str())
    }

    /// Adds bytes, dropping the oldest half if they do not fit.
    ///
    /// # Errors
    /// The disk is full, or the data directory is gone: it is not made anew.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let dir = self.dir();
        let mut file = match open(&dir) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                make(&self.project())?;
                make(&dir)?;
                open(&dir)?
            }
            other => other?,
        };
        let size = file.metadata()?.len();
        if size > 0 && size + bytes.len() as u64 > HALF {
            fs::rename(dir.join(NOW), dir.join(BEFORE))?;
            file = open(&dir)?;
        }
        file.write_all(bytes)
    }

    /// The last `most` bytes, as text; empty if nothing was ever said.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn tail(&self, most: usize) -> io::Result<LogTail> {
        let dir = self.dir();
        let most = most.min(WHOLE);
        let (mut bytes, mut more) = end_of(&dir.join(NOW), most)?;
        if bytes.len() < most {
            let (mut before, cut) = end_of(&dir.join(BEFORE), most - bytes.len())?;
            // What the file before that held is gone.
            more = cut || !before.is_empty();
            before.append(&mut bytes);
            bytes = before;
        }
        let mut text = safe(&bytes);
        if more && let Some(at) = text.find('\n').filter(|at| at + 1 < text.len()) {
            text.drain(..=at);
        }
        Ok(LogTail {
            text,
            truncated: more,
        })
    }

    /// Removes the log.
    ///
    /// # Errors
    /// The disk cannot be written.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.dir()) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        // Stays while another sandbox of the project has a log.
        let _ = fs::remove_dir(self.project());
        Ok(())
    }
}

fn make(dir: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => Err(cause),
        _ => Ok(()),
    }
}

fn open(dir: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(dir.join(NOW))
}

/// The last `most` bytes of a file, and whether there are more.
fn end_of(path: &Path, most: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), false)),
        Err(cause) => return Err(cause),
    };
    let size = file.metadata()?.len();
    let from = size.saturating_sub(most as u64);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok((bytes, from > 0))
}

/// Text that a terminal can be given.
fn safe(bytes: &[u8]) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    String::from_utf8_lossy(bytes).chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use hutch_protocol::ProjectId;

    use super::*;

    fn log(dir: &Path) -> BootLog {
        fs::create_dir(dir.join(LOGS)).unwrap();
        let sandbox = SandboxKey {
            project: ProjectId::random(),
            name: "main".parse().unwrap(),
        };
        BootLog::of(dir, &sandbox)
    }

    #[test]
    fn the_end_is_read_in_whole_lines_and_safe() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        assert_eq!(log.tail(100).unwrap(), LogTail::default());
        log.append(b"one\ntwo \x1b[2J\xff\tx\n").unwrap();
        let all = log.tail(100).unwrap();
        assert_eq!(all.text, "one\ntwo \u{fffd}[2J\u{fffd}\tx\n");
        assert!(!all.truncated);
        let cut = log.tail(14).unwrap();
        assert_eq!(cut.text, "two \u{fffd}[2J\u{fffd}\tx\n");
        assert!(cut.truncated);
    }

    #[test]
    fn a_flood_keeps_two_halves_and_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        for number in 0..40 {
            let mut block = vec![b'.'; 32 * 1024];
            block.extend(format!("\nblock {number}\n").bytes());
            log.append(&block).unwrap();
        }
        let sizes: Vec<u64> = [NOW, BEFORE]
            .map(|name| fs::metadata(log.dir().join(name)).unwrap().len())
            .to_vec();
        assert!(sizes.iter().all(|size| *size <= HALF), "{sizes:?}");
        let tail = log.tail(usize::MAX).unwrap();
        assert!(tail.truncated && tail.text.len() <= WHOLE);
        assert!(tail.text.ends_with("\nblock 39\n"));
        assert!(tail.text.contains("\nblock 32\n"));
    }

    #[test]
    fn it_can_be_removed_and_a_lost_data_directory_is_not_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        log.append(b"x\n").unwrap();
        log.remove().unwrap();
        log.remove().unwrap();
        assert!(!log.project().exists());
        fs::remove_dir(dir.path().join(LOGS)).unwrap();
        assert!(log.append(b"x\n").is_err());
        assert!(!dir.path().join(LOGS).exists());
    }
}
