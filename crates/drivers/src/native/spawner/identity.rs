//! Changing the ids of the calling thread.

use std::io;

use rustix::fs::{Gid, Uid};
use rustix::thread::{
    CapabilitiesSecureBits, set_capabilities_secure_bits, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

/// Lets ids change without the kernel dropping capabilities along.
pub fn keep_capabilities() -> io::Result<()> {
    Ok(set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_SETUID_FIXUP,
    )?)
}

/// Becomes `id` for what is checked and charged, and stays root otherwise.
pub fn act_as(id: u32) -> io::Result<()> {
    let gid = Gid::from_raw(id);
    let uid = Uid::from_raw(id);
    set_thread_res_gid(None::<Gid>, gid, None::<Gid>)?;
    Ok(set_thread_res_uid(None::<Uid>, uid, None::<Uid>)?)
}

/// Becomes root of the current user namespace, without other groups.
pub fn become_root() -> io::Result<()> {
    set_thread_groups(&[])?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    Ok(set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?)
}
