//! System calls that a sandbox must not have, each tried harmlessly.
//!
//! The same table runs outside, as root in a mount namespace of its own, to
//! show that it is the sandbox that refuses.

use std::ffi::CStr;
use std::io;
use std::ptr::{null, null_mut};

use libc::{c_long, syscall};

/// What root outside gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// The call does what it says.
    Works,
    /// The kernel looks at the arguments and finds them wanting.
    Reached,
}

/// A name, what root outside gets, and the try itself.
pub type Attempt = (&'static str, Outside, fn() -> c_long);

const ROOT: &CStr = c"/";
const NONE: c_long = 0;

// SAFETY of the whole table: each call gets pointers to live, large enough
// values or null, and runs in a process of its own that does nothing else.
macro_rules! call {
    ($($argument:expr),+ $(,)?) => {
        // SAFETY: see above the macro.
        unsafe { syscall($($argument),+) }
    };
}

fn open(path: &CStr) -> c_long {
    call!(libc::SYS_open, path.as_ptr(), libc::O_RDONLY)
}

fn socket(family: i32, kind: i32) -> c_long {
    call!(libc::SYS_socket, family, kind, NONE)
}

fn new_namespace(flag: i32) -> c_long {
    call!(libc::SYS_unshare, flag)
}

fn clone_with(flag: i32) -> c_long {
    let pid = call!(
        libc::SYS_clone,
        c_long::from(flag | libc::SIGCHLD),
        NONE,
        NONE,
        NONE,
        NONE
    );
    if pid == 0 {
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) }
    }
    pid
}

fn clone3_with(flag: i32) -> c_long {
    let mut args = [0_u64; 8];
    args[0] = flag as u64 & 0xffff_ffff;
    args[4] = libc::SIGCHLD as u64;
    let pid = call!(libc::SYS_clone3, args.as_mut_ptr(), size_of_val(&args));
    if pid == 0 {
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) }
    }
    pid
}

fn by_handle() -> c_long {
    let mut handle = [0_u32; 40];
    handle[0] = 128;
    let mut mount = 0_i32;
    let found = call!(
        libc::SYS_name_to_handle_at,
        libc::AT_FDCWD,
        ROOT.as_ptr(),
        handle.as_mut_ptr(),
        &raw mut mount,
        NONE,
    );
    if found < 0 {
        return found;
    }
    call!(
        libc::SYS_open_by_handle_at,
        open(ROOT),
        handle.as_mut_ptr(),
        libc::O_PATH
    )
}

fn type_into_terminal() -> c_long {
    let master = call!(
        libc::SYS_open,
        c"/dev/ptmx".as_ptr(),
        libc::O_RDWR | libc::O_NOCTTY
    );
    let mut unlock = 0_i32;
    call!(libc::SYS_ioctl, master, libc::TIOCSPTLCK, &raw mut unlock);
    let slave = call!(
        libc::SYS_ioctl,
        master,
        libc::TIOCGPTPEER,
        libc::O_RDWR | libc::O_NOCTTY
    );
    call!(libc::SYS_ioctl, slave, libc::TIOCSTI, c"x".as_ptr())
}

fn bpf_map() -> c_long {
    let mut attr = [0_u32; 32];
    (attr[0], attr[1], attr[2], attr[3]) = (2, 4, 4, 1);
    call!(libc::SYS_bpf, NONE, attr.as_mut_ptr(), 72_usize)
}

fn perf() -> c_long {
    let mut attr = [0_u64; 16];
    attr[0] = 1 | (128 << 32);
    call!(
        libc::SYS_perf_event_open,
        attr.as_mut_ptr(),
        NONE,
        -1_i64,
        -1_i64,
        NONE
    )
}

fn read_own_memory() -> c_long {
    let mut to = [0_u8; 8];
    let from = [1_u8; 8];
    let local = [to.as_mut_ptr() as u64, 8];
    let remote = [from.as_ptr() as u64, 8];
    call!(
        libc::SYS_process_vm_readv,
        std::process::id(),
        local.as_ptr(),
        1_u64,
        remote.as_ptr(),
        1_u64,
        NONE,
    )
}

fn steal_descriptor() -> c_long {
    let own = call!(libc::SYS_pidfd_open, std::process::id(), NONE);
    call!(libc::SYS_pidfd_getfd, own, NONE, NONE)
}

fn enter_namespace() -> c_long {
    call!(libc::SYS_setns, open(c"/proc/self/ns/uts"), NONE)
}

fn i386_getpid() -> c_long {
    let mut number: u64 = 20;
    // SAFETY: the old entry to the kernel; it changes rax and flags only.
    unsafe {
        std::arch::asm!("int 0x80", inout("rax") number, lateout("r8") _, lateout("r9") _,
            lateout("r10") _, lateout("r11") _);
    }
    number.cast_signed()
}

const TABLE: &[Attempt] = &[
    // Before anything is mounted over its place.
    ("mknod", Outside::Works, || {
        call!(
            libc::SYS_mknod,
            c"/mnt/hutch-probe".as_ptr(),
            libc::S_IFBLK | 0o600,
            0x0800_i64
        )
    }),
    ("syslog", Outside::Works, || {
        let mut text = [0_u8; 64];
        call!(libc::SYS_syslog, 3_i64, text.as_mut_ptr(), 64_i64)
    }),
    ("ptrace", Outside::Works, || {
        call!(libc::SYS_ptrace, NONE, NONE, NONE, NONE)
    }),
    ("process_vm_readv", Outside::Works, read_own_memory),
    ("pidfd_getfd", Outside::Works, steal_descriptor),
    ("kcmp", Outside::Works, || {
        let own = std::process::id();
        call!(libc::SYS_kcmp, own, own, 1_i64, NONE, NONE)
    }),
    ("unshare-user", Outside::Works, || {
        new_namespace(libc::CLONE_NEWUSER)
    }),
    ("unshare-mount", Outside::Works, || {
        new_namespace(libc::CLONE_NEWNS)
    }),
    ("unshare-net", Outside::Works, || {
        new_namespace(libc::CLONE_NEWNET)
    }),
    ("unshare-pid", Outside::Works, || {
        new_namespace(libc::CLONE_NEWPID)
    }),
    ("unshare-uts", Outside::Works, || {
        new_namespace(libc::CLONE_NEWUTS)
    }),
    ("unshare-ipc", Outside::Works, || {
        new_namespace(libc::CLONE_NEWIPC)
    }),
    ("unshare-cgroup", Outside::Works, || {
        new_namespace(libc::CLONE_NEWCGROUP)
    }),
    ("unshare-time", Outside::Works, || new_namespace(0x80)),
    ("clone-user", Outside::Works, || {
        clone_with(libc::CLONE_NEWUSER)
    }),
    ("clone-net", Outside::Works, || {
        clone_with(libc::CLONE_NEWNET)
    }),
    ("clone3-user", Outside::Works, || {
        clone3_with(libc::CLONE_NEWUSER)
    }),
    ("clone3-mount", Outside::Works, || {
        clone3_with(libc::CLONE_NEWNS)
    }),
    ("setns", Outside::Works, enter_namespace),
    ("mount", Outside::Works, || {
        let kind = c"tmpfs".as_ptr();
        call!(
            libc::SYS_mount,
            kind,
            c"/mnt".as_ptr(),
            kind,
            NONE,
            null::<u8>()
        )
    }),
    ("remount", Outside::Works, || {
        let flags = libc::MS_BIND | libc::MS_REC;
        call!(
            libc::SYS_mount,
            c"/proc/sys".as_ptr(),
            c"/mnt".as_ptr(),
            null::<u8>(),
            flags,
            NONE
        )
    }),
    ("umount", Outside::Works, || {
        call!(libc::SYS_umount2, c"/dev/shm".as_ptr(), libc::MNT_DETACH)
    }),
    ("pivot_root", Outside::Reached, || {
        call!(libc::SYS_pivot_root, ROOT.as_ptr(), ROOT.as_ptr())
    }),
    ("fsopen", Outside::Works, || {
        call!(libc::SYS_fsopen, c"tmpfs".as_ptr(), NONE)
    }),
    ("fspick", Outside::Works, || {
        call!(libc::SYS_fspick, libc::AT_FDCWD, ROOT.as_ptr(), NONE)
    }),
    ("open_tree", Outside::Works, || {
        call!(libc::SYS_open_tree, libc::AT_FDCWD, ROOT.as_ptr(), 1_i64)
    }),
    ("move_mount", Outside::Reached, || {
        let root = ROOT.as_ptr();
        call!(
            libc::SYS_move_mount,
            libc::AT_FDCWD,
            root,
            libc::AT_FDCWD,
            root,
            NONE
        )
    }),
    ("mount_setattr", Outside::Reached, || {
        call!(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            ROOT.as_ptr(),
            NONE,
            NONE,
            NONE
        )
    }),
    ("bpf", Outside::Works, bpf_map),
    ("perf_event_open", Outside::Works, perf),
    ("keyctl", Outside::Works, || {
        call!(libc::SYS_keyctl, NONE, -3_i64, 1_i64)
    }),
    ("add_key", Outside::Works, || {
        let name = c"user".as_ptr();
        call!(
            libc::SYS_add_key,
            name,
            c"hutch".as_ptr(),
            c"x".as_ptr(),
            1_i64,
            -2_i64
        )
    }),
    ("userfaultfd", Outside::Works, || {
        call!(libc::SYS_userfaultfd, 1_i64)
    }),
    ("io_uring_setup", Outside::Works, || {
        let mut parameters = [0_u8; 256];
        call!(libc::SYS_io_uring_setup, 1_i64, parameters.as_mut_ptr())
    }),
    ("open_by_handle_at", Outside::Works, by_handle),
    ("fanotify_init", Outside::Works, || {
        call!(libc::SYS_fanotify_init, NONE, NONE)
    }),
    ("kexec_load", Outside::Reached, || {
        call!(libc::SYS_kexec_load, NONE, NONE, NONE, 0x7fff_i64)
    }),
    ("quotactl", Outside::Reached, || {
        call!(libc::SYS_quotactl, NONE, NONE, NONE, NONE)
    }),
    ("swapon", Outside::Reached, || {
        call!(libc::SYS_swapon, c"/never".as_ptr(), NONE)
    }),
    ("settimeofday", Outside::Works, || {
        call!(libc::SYS_settimeofday, null_mut::<u8>(), null_mut::<u8>())
    }),
    ("sethostname", Outside::Reached, || {
        call!(libc::SYS_sethostname, NONE, -1_i64)
    }),
    ("modify_ldt", Outside::Works, || {
        let mut table = [0_u8; 64];
        call!(libc::SYS_modify_ldt, NONE, table.as_mut_ptr(), 64_i64)
    }),
    ("iopl", Outside::Reached, || call!(libc::SYS_iopl, NONE)),
    ("personality", Outside::Works, || {
        call!(libc::SYS_personality, 0x004_0000_i64)
    }),
    ("socket-packet", Outside::Works, || {
        socket(libc::AF_PACKET, libc::SOCK_RAW)
    }),
    ("socket-vsock", Outside::Reached, || {
        socket(libc::AF_VSOCK, libc::SOCK_STREAM)
    }),
    ("socket-alg", Outside::Reached, || {
        socket(libc::AF_ALG, libc::SOCK_SEQPACKET)
    }),
    ("socket-raw", Outside::Works, || {
        call!(libc::SYS_socket, libc::AF_INET, libc::SOCK_RAW, 1_i64)
    }),
    ("socket-audit", Outside::Reached, || {
        call!(
            libc::SYS_socket,
            libc::AF_NETLINK,
            libc::SOCK_RAW,
            libc::NETLINK_AUDIT
        )
    }),
    ("tiocsti", Outside::Works, type_into_terminal),
    ("btrfs-ioctl", Outside::Reached, || {
        let mut arguments = [0_u8; 4096];
        call!(
            libc::SYS_ioctl,
            open(ROOT),
            0x5000_940e_u64,
            arguments.as_mut_ptr()
        )
    }),
    ("i386", Outside::Works, i386_getpid),
];

fn all() -> impl Iterator<Item = &'static Attempt> {
    TABLE.iter().chain(super::escapes::TABLE)
}

/// The names of the tables.
pub fn names() -> Vec<&'static str> {
    all().map(|(name, ..)| *name).collect()
}

/// Tries one: `works` or `reached` as the table has it for outside, and the
/// error, 0 for success.
pub fn attempt(name: &str) -> Option<(&'static str, i32)> {
    let (_, outside, call) = all().find(|(known, ..)| *known == name)?;
    let error = if call() < 0 {
        io::Error::last_os_error().raw_os_error().unwrap_or(-1)
    } else {
        0
    };
    let expected = match outside {
        Outside::Works => "works",
        Outside::Reached => "reached",
    };
    Some((expected, error))
}
