//! The network namespace: loopback, no route out.
//!
//! It belongs to the host's user namespace, so no capability inside changes it.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::step::Step;

/// Sets up the caller's fresh network namespace. `/proc` must be mounted.
pub fn set_up() -> io::Result<()> {
    loopback_up().step("bring lo up")?;
    // Root inside has no capability over the namespace; ports below 1024 and
    // ping are therefore open to everybody in it, as in Docker.
    fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0").step("open low ports")?;
    fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647").step("open ping")
}

fn loopback_up() -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: an all-zero `ifreq` is valid: a name of NULs and a union of
    // plain numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    // SAFETY: the socket is open and SIOCSIFFLAGS reads one `ifreq`.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
