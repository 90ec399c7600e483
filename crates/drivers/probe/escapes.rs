//! The rest of what published escapes are made of, each tried harmlessly.

use std::ptr::null;

use libc::{c_long, syscall};

use super::attempts::Attempt;
use super::attempts::Outside::{Reached, Works};

const NONE: c_long = 0;
/// A descriptor that is never open.
const NEVER: c_long = 1_000_000;

// SAFETY of the whole table: each call gets pointers to live, large enough
// values or null, and runs in a process of its own that does nothing else.
macro_rules! call {
    ($($argument:expr),+ $(,)?) => {
        // SAFETY: see above the macro.
        unsafe { syscall($($argument),+) }
    };
}

fn socket(family: i32, kind: i32, protocol: i32) -> c_long {
    call!(libc::SYS_socket, family, kind, protocol)
}

fn netlink(protocol: i32) -> c_long {
    socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol)
}

/// The process that a command would want to take over: PID 1 inside. Outside
/// the test names one that root may look into.
fn target() -> c_long {
    let named = std::env::var("HUTCH_PROBE_TARGET").ok();
    named.and_then(|pid| pid.parse().ok()).unwrap_or(1)
}

fn first() -> c_long {
    call!(libc::SYS_pidfd_open, target(), NONE)
}

fn write_to_first() -> c_long {
    let from = [0_u8; 8];
    let local = [from.as_ptr() as u64, 8];
    // An address that is never mapped: reached is enough.
    let remote = [0_u64, 8];
    call!(
        libc::SYS_process_vm_writev,
        target(),
        local.as_ptr(),
        1_u64,
        remote.as_ptr(),
        1_u64,
        NONE,
    )
}

fn rename_interface() -> c_long {
    // SAFETY: an all-zero `ifreq` is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l'.cast_signed();
    request.ifr_name[1] = b'o'.cast_signed();
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
    call!(
        libc::SYS_ioctl,
        socket,
        libc::SIOCSIFFLAGS,
        &raw mut request
    )
}

/// Makes the file immutable, and undoes it.
fn set_immutable() -> c_long {
    const SET_FLAGS: u64 = 0x4008_6602;
    let path = c"/tmp/hutch-immutable".as_ptr();
    let file = call!(libc::SYS_open, path, libc::O_RDWR | libc::O_CREAT, 0o600);
    let mut flags: c_long = 0x10;
    let done = call!(libc::SYS_ioctl, file, SET_FLAGS, &raw mut flags);
    let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    flags = 0;
    call!(libc::SYS_ioctl, file, SET_FLAGS, &raw mut flags);
    call!(libc::SYS_unlink, path);
    if done < 0 {
        // SAFETY: the place is this thread's own.
        unsafe { *libc::__errno_location() = error };
    }
    done
}

/// See [`super::attempts`] for how it is used.
pub const TABLE: &[Attempt] = &[
    ("process_vm_writev-1", Reached, write_to_first),
    ("ptrace-attach-1", Reached, || {
        call!(libc::SYS_ptrace, 0x4206_i64, target(), NONE, NONE)
    }),
    ("pidfd_getfd-1", Works, || {
        call!(libc::SYS_pidfd_getfd, first(), NONE, NONE)
    }),
    ("process_madvise-1", Reached, || {
        call!(libc::SYS_process_madvise, first(), NONE, NONE, 21_i64, NONE)
    }),
    ("kcmp-1", Works, || {
        call!(libc::SYS_kcmp, target(), target(), 1_i64, NONE, NONE)
    }),
    ("setns-pidfd-1", Reached, || {
        call!(libc::SYS_setns, first(), libc::CLONE_NEWUTS | 0x4000_0000)
    }),
    ("init_module", Reached, || {
        call!(libc::SYS_init_module, NONE, NONE, c"".as_ptr())
    }),
    ("finit_module", Reached, || {
        call!(libc::SYS_finit_module, NEVER, c"".as_ptr(), NONE)
    }),
    ("delete_module", Reached, || {
        call!(libc::SYS_delete_module, c"hutch_never".as_ptr(), NONE)
    }),
    ("kexec_file_load", Reached, || {
        call!(libc::SYS_kexec_file_load, NEVER, NEVER, NONE, NONE, NONE)
    }),
    ("reboot", Reached, || {
        call!(libc::SYS_reboot, NONE, NONE, NONE, NONE)
    }),
    ("acct", Reached, || {
        call!(libc::SYS_acct, c"/never".as_ptr())
    }),
    ("swapoff", Reached, || {
        call!(libc::SYS_swapoff, c"/never".as_ptr())
    }),
    ("setdomainname", Reached, || {
        call!(libc::SYS_setdomainname, NONE, -1_i64)
    }),
    ("clock_settime", Reached, || {
        call!(libc::SYS_clock_settime, 99_i64, null::<u8>())
    }),
    ("ioperm", Reached, || {
        call!(libc::SYS_ioperm, NONE, 1_i64, NONE)
    }),
    ("request_key", Reached, || {
        let name = c"user".as_ptr();
        call!(libc::SYS_request_key, name, c"hutch".as_ptr(), NONE, NONE)
    }),
    ("io_uring_enter", Reached, || {
        call!(
            libc::SYS_io_uring_enter,
            NEVER,
            NONE,
            NONE,
            NONE,
            NONE,
            NONE
        )
    }),
    ("io_uring_register", Reached, || {
        call!(libc::SYS_io_uring_register, NEVER, NONE, NONE, NONE)
    }),
    ("fsconfig", Reached, || {
        call!(libc::SYS_fsconfig, NEVER, NONE, NONE, NONE, NONE)
    }),
    ("fsmount", Reached, || {
        call!(libc::SYS_fsmount, NEVER, NONE, NONE)
    }),
    // Would name the places of mounts on the host.
    ("statmount", Reached, || {
        call!(457_i64, NONE, NONE, NONE, NONE)
    }),
    ("listmount", Reached, || {
        call!(458_i64, NONE, NONE, NONE, NONE)
    }),
    ("migrate_pages", Reached, || {
        call!(libc::SYS_migrate_pages, target(), NONE, NONE, NONE)
    }),
    ("move_pages", Reached, || {
        call!(libc::SYS_move_pages, target(), NONE, NONE, NONE, NONE, NONE)
    }),
    ("mbind", Reached, || {
        call!(libc::SYS_mbind, NONE, NONE, 99_i64, NONE, NONE, NONE)
    }),
    ("fanotify_mark", Reached, || {
        call!(libc::SYS_fanotify_mark, NEVER, NONE, NONE, NEVER, NONE)
    }),
    ("vhangup", Works, || call!(libc::SYS_vhangup)),
    ("if-down", Works, rename_interface),
    ("immutable", Works, set_immutable),
    ("netlink-uevent", Works, || {
        netlink(libc::NETLINK_KOBJECT_UEVENT)
    }),
    ("netlink-netfilter", Reached, || {
        netlink(libc::NETLINK_NETFILTER)
    }),
    ("netlink-generic", Works, || netlink(libc::NETLINK_GENERIC)),
    ("netlink-connector", Reached, || {
        netlink(libc::NETLINK_CONNECTOR)
    }),
    ("netlink-xfrm", Reached, || netlink(libc::NETLINK_XFRM)),
    ("netlink-crypto", Reached, || netlink(libc::NETLINK_CRYPTO)),
    ("socket-key", Reached, || {
        socket(libc::AF_KEY, libc::SOCK_RAW, 2)
    }),
    ("socket-xdp", Reached, || {
        socket(libc::AF_XDP, libc::SOCK_RAW, 0)
    }),
    ("socket-can", Reached, || {
        socket(libc::AF_CAN, libc::SOCK_RAW, 1)
    }),
    ("socket-bluetooth", Reached, || {
        socket(libc::AF_BLUETOOTH, libc::SOCK_RAW, 1)
    }),
    ("socket-tipc", Reached, || {
        socket(libc::AF_TIPC, libc::SOCK_STREAM, 0)
    }),
    ("socket-rds", Reached, || {
        socket(libc::AF_RDS, libc::SOCK_SEQPACKET, 0)
    }),
    ("socket-nfc", Reached, || {
        socket(libc::AF_NFC, libc::SOCK_RAW, 0)
    }),
    ("socket-raw6", Works, || {
        socket(libc::AF_INET6, libc::SOCK_RAW, 58)
    }),
    ("socket-packet-old", Reached, || {
        socket(libc::AF_INET, 10, 0x0300)
    }),
];
