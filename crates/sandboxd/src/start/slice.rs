//! The scheduler's slice of a command.
//!
//! The daemon and the starter come with a short slice, so that a busy neighbour
//! does not hold up calls. A command is given the usual one: it would only be
//! interrupted more often.

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

/// Gives the calling thread the usual slice. Where that fails, the command is
/// interrupted more often.
pub(super) fn make_usual() {
    let mut attributes = Attributes::default();
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or_default();
    // SAFETY: the kernel writes at most `size` bytes, which are there.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if got != 0 || attributes.policy != libc::SCHED_OTHER.cast_unsigned() {
        return;
    }
    attributes.size = size;
    // What the kernel takes for "the usual".
    attributes.runtime = 0;
    // SAFETY: the kernel only reads `size` bytes, which are there.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}
