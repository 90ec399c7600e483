//! The document beside each volume's content.

use std::io::{Read, Write};
use std::os::fd::AsFd;

use hutch_failpoint::failpoint;
use rustix::fs::{Mode, OFlags, fsync, openat, renameat};

use super::VolumeState;

const NAME: &str = "state.json";
const DRAFT: &str = "state.json.new";
const VERSION: u32 = 1;
/// A state document is a few hundred bytes.
const LIMIT: u64 = 64 * 1024;

/// Replaces the document in `dir`: whole and on disk when this returns.
pub fn write(dir: impl AsFd, state: &VolumeState) -> std::io::Result<()> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let draft = openat(dir.as_fd(), DRAFT, flags, Mode::from_raw_mode(0o600))?;
    let mut draft = std::fs::File::from(draft);
    draft.write_all(&serde_json::to_vec(state)?)?;
    draft.sync_all()?;
    failpoint!("volume.drafted")?;
    renameat(dir.as_fd(), DRAFT, dir.as_fd(), NAME)?;
    Ok(fsync(dir)?)
}

/// Writes the document into a `dir` that is not in its place yet. The document
/// is on disk when this returns; its name is with the move of the directory.
pub fn first(dir: impl AsFd, state: &VolumeState) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(dir, NAME, flags, Mode::from_raw_mode(0o600))?;
    let mut file = std::fs::File::from(file);
    file.write_all(&serde_json::to_vec(state)?)?;
    file.sync_all()
}

/// Why a document tells nothing.
#[derive(Debug)]
pub enum Unreadable {
    /// A newer hutch wrote it.
    Newer(String),
    /// It is cut, emptied or overwritten.
    Damaged(String),
}

/// The version alone, which every version of the document has.
#[derive(serde::Deserialize)]
struct Versioned {
    version: u32,
}

/// Reads the document in `dir`. The inner error says what is wrong with it.
pub fn read(dir: impl AsFd) -> std::io::Result<Result<VolumeState, Unreadable>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = std::fs::File::from(openat(dir, NAME, flags, Mode::empty())?);
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text)?;
    Ok(parse(&text))
}

fn parse(text: &[u8]) -> Result<VolumeState, Unreadable> {
    let damaged = |cause: serde_json::Error| Unreadable::Damaged(cause.to_string());
    let Versioned { version } = serde_json::from_slice(text).map_err(damaged)?;
    if version > VERSION {
        let reason = format!("version {version} is newer than this hutch");
        return Err(Unreadable::Newer(reason));
    }
    serde_json::from_slice(text).map_err(damaged)
}
