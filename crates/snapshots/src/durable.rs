//! Waiting for the disk, in one place, where tests let it fail.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Makes a file durable.
pub(crate) fn file(file: &File) -> io::Result<()> {
    #[cfg(test)]
    failing::reached()?;
    file.sync_all()
}

/// Makes the names in a directory durable.
pub(crate) fn directory(directory: &Path) -> io::Result<()> {
    #[cfg(test)]
    failing::reached()?;
    File::open(directory)?.sync_all()
}

/// Makes the whole file system durable that a directory is on.
pub(crate) fn file_system(directory: BorrowedFd<'_>) -> io::Result<()> {
    #[cfg(test)]
    failing::reached()?;
    Ok(rustix::fs::syncfs(directory)?)
}

/// A disk that fails one of the calls, counted on each thread.
#[cfg(test)]
pub(crate) mod failing {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// Lets `work` meet a failure after that many successes. The second value
    /// says whether it came so far.
    pub(crate) fn after<T>(successes: u32, work: impl FnOnce() -> T) -> (T, bool) {
        LEFT.set(Some(successes));
        let done = work();
        (done, LEFT.replace(None).is_none())
    }

    pub(super) fn reached() -> io::Result<()> {
        match LEFT.get() {
            None => Ok(()),
            Some(0) => {
                LEFT.set(None);
                Err(io::Error::from_raw_os_error(
                    rustix::io::Errno::IO.raw_os_error(),
                ))
            }
            Some(left) => {
                LEFT.set(Some(left - 1));
                Ok(())
            }
        }
    }
}
