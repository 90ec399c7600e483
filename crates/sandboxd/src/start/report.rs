//! A page that a starting process, the starter and the daemon share: why a start failed,
//! and which one the starter was at should it die.

use super::launch::Stage;
use rustix::io::Errno;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

#[repr(C)]
struct Page {
    call: AtomicU64,
    stage: AtomicU32,
    errno: AtomicI32,
}

/// The shared page. The starter is suspended while the child uses it.
#[derive(Debug)]
pub(super) struct Report(NonNull<Page>);

// SAFETY: the mapping belongs to the process, not to a thread, and holds only atomics.
unsafe impl Send for Report {}
// SAFETY: as above; every access goes through an atomic.
unsafe impl Sync for Report {}

impl Report {
    pub(super) fn new() -> Result<Self, Errno> {
        // SAFETY: a fresh anonymous mapping with no address hint aliases nothing;
        // it is larger than `Page`, page aligned and zeroed, which is a valid `Page`.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Page>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(last_errno());
        }
        NonNull::new(address.cast::<Page>())
            .map(Self)
            .ok_or(Errno::NOMEM)
    }

    fn page(&self) -> &Page {
        // SAFETY: the mapping made in `new` lives as long as the process and holds a `Page`
        // of atomics only, so shared access from two processes is sound.
        unsafe { self.0.as_ref() }
    }

    /// The starter begins with a call.
    pub(super) fn begin(&self, call: u64) {
        self.page().stage.store(0, Ordering::SeqCst);
        self.page().call.store(call, Ordering::SeqCst);
    }

    /// The call has its answer.
    pub(super) fn done(&self) {
        self.page().call.store(0, Ordering::SeqCst);
    }

    /// The call that a starter that died was at.
    pub(super) fn take_call(&self) -> Option<u64> {
        Some(self.page().call.swap(0, Ordering::SeqCst)).filter(|call| *call != 0)
    }

    pub(super) fn set(&self, stage: Stage, errno: Errno) {
        self.page()
            .errno
            .store(errno.raw_os_error(), Ordering::SeqCst);
        self.page().stage.store(stage.code(), Ordering::SeqCst);
    }

    pub(super) fn failure(&self) -> Option<(Stage, i32)> {
        let stage = Stage::from_code(self.page().stage.load(Ordering::SeqCst))?;
        Some((stage, self.page().errno.load(Ordering::SeqCst)))
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, of this size, which nothing refers to any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Page>()) };
    }
}

/// The calling thread's error number after a failed libc call.
pub(super) fn last_errno() -> Errno {
    std::io::Error::last_os_error()
        .raw_os_error()
        .map_or(Errno::IO, Errno::from_raw_os_error)
}
