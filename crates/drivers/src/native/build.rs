//! Which build of hutch a program is.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells a program's file from every other, also from its own successor
/// at the same path.
fn name(file: &Metadata) -> String {
    format!(
        "{:x}-{:x}-{:x}-{:x}.{:x}",
        file.dev(),
        file.ino(),
        file.size(),
        file.mtime(),
        file.mtime_nsec()
    )
}

/// The build of an opened program.
pub fn of(program: &File) -> io::Result<String> {
    Ok(name(&program.metadata()?))
}

/// The build of the calling process.
pub fn own() -> io::Result<String> {
    Ok(name(&std::fs::metadata("/proc/self/exe")?))
}

/// Opens a program that another process is to become.
pub fn open(program: &Path) -> io::Result<File> {
    File::open(program)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_copy_is_another_build_and_the_running_file_is_its_own() {
        let own_file = open(Path::new("/proc/self/exe")).unwrap();
        assert_eq!(of(&own_file).unwrap(), own().unwrap());
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        std::fs::write(&copy, b"x").unwrap();
        assert_ne!(of(&open(&copy).unwrap()).unwrap(), own().unwrap());
    }
}
