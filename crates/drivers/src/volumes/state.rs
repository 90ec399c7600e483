//! The document beside each volume's content.

use std::io::{Read, Write};
use std::os::fd::AsFd;

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
    renameat(dir.as_fd(), DRAFT, dir.as_fd(), NAME)?;
    Ok(fsync(dir)?)
}

/// Reads the document in `dir`. The inner error says what is wrong with it.
pub fn read(dir: impl AsFd) -> std::io::Result<Result<VolumeState, String>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = std::fs::File::from(openat(dir, NAME, flags, Mode::empty())?);
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text)?;
    Ok(match serde_json::from_slice::<VolumeState>(&text) {
        Ok(state) if state.version == VERSION => Ok(state),
        Ok(state) => Err(format!(
            "version {} is newer than this hutch",
            state.version
        )),
        Err(cause) => Err(cause.to_string()),
    })
}
