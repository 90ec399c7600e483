//! How soon the scheduler lets our own threads run.
//!
//! A thread that wakes waits until the one on its processor has used up its
//! slice, some milliseconds, unless its own slice is the shorter one. A call
//! goes through half a dozen threads, so beside a neighbour that computes all
//! the time it would wait that often. A short slice makes nobody's share larger.

use std::io;

/// The shortest that the kernel takes, in nanoseconds.
const SLICE: u64 = 100_000;

/// The kernel's `struct sched_attr`, version 1.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    utilization_min: u32,
    utilization_max: u32,
}

/// Gives the calling thread, and what it starts from now on, the shortest
/// slice. Kernels before 6.12 do not know of it and change nothing.
///
/// # Errors
/// The kernel refuses, which it has no reason to.
pub fn shorten() -> io::Result<()> {
    let mut attributes = Attributes::default();
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or_default();
    // SAFETY: the kernel writes at most `size` bytes, which are there.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    if attributes.policy != libc::SCHED_OTHER.cast_unsigned() {
        return Ok(()); // Somebody chose another policy for us.
    }
    attributes.size = size;
    attributes.runtime = SLICE;
    // SAFETY: the kernel only reads `size` bytes, which are there.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
