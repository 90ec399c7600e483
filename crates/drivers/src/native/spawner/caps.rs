//! The capabilities that a sandbox's processes may have.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// Docker's default set less what would do nothing here: MKNOD (refused in a
/// user namespace), NET_RAW (the network belongs to the host) and AUDIT_WRITE.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SETFCAP);

/// Drops all others, for this process and all it will start.
pub fn drop_others() -> io::Result<()> {
    // Ask about every number, since a newer kernel may have newer ones.
    for bit in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if !KEPT.contains(one) && remove_capability_from_bounding_set(one).is_err() {
            break;
        }
    }
    clear_ambient_capability_set()?;
    Ok(set_capabilities(
        None,
        CapabilitySets {
            effective: KEPT,
            permitted: KEPT,
            inheritable: CapabilitySet::empty(),
        },
    )?)
}
