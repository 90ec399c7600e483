//! Reading and writing the small files of control groups.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Writes one value in one write, as the kernel wants it.
pub fn write(path: &Path, value: impl AsRef<[u8]>) -> io::Result<()> {
    let named =
        |cause: io::Error| io::Error::new(cause.kind(), format!("{}: {cause}", path.display()));
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_ref()))
        .map_err(named)
}

/// Reads a file that holds one number.
pub fn number(path: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(path)?;
    text.trim().parse().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} does not hold a number", path.display()),
        )
    })
}

/// Reads the value after `key` in a file of `key value` lines.
pub fn field(path: &Path, key: &str) -> io::Result<Option<u64>> {
    let text = fs::read_to_string(path)?;
    Ok(text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok()).flatten()
    }))
}

/// Makes a group; one that is there already is fine.
pub fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => Err(cause),
        _ => Ok(()),
    }
}

/// Removes a group with all below it. A dying process holds a group for a
/// moment, so it is tried again until `deadline`.
pub fn remove(path: &Path, deadline: Instant) -> io::Result<()> {
    loop {
        match remove_once(path) {
            Err(cause)
                if cause.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_micros(500));
            }
            other => return other,
        }
    }
}

/// Removes a group with all below it, or says that it is busy.
pub fn remove_once(path: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(cause),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_once(&entry.path())?;
        }
    }
    match fs::remove_dir(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
