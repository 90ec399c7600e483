//! The filters on system calls, compiled before any fork.

mod allowed;
mod conditions;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch, apply_filter, sock_filter,
};

/// The newest call that this list was written with. Later ones answer ENOSYS,
/// so that programs fall back as on an older kernel.
const NEWEST: u32 = libc::SYS_mseal as u32;

/// The compiled filters.
pub struct Filters {
    /// What may be called at all; anything else is EPERM.
    allowed: BpfProgram,
    /// ENOSYS for what this release does not know.
    unknown: BpfProgram,
    /// What the daemon adds for commands: `clone3` is ENOSYS, since a filter
    /// cannot see its flags. Passed by descriptor.
    pub for_commands: OwnedFd,
}

impl Filters {
    /// Compiles the filters.
    pub fn compile() -> io::Result<Self> {
        let failed = |cause: seccompiler::BackendError| {
            io::Error::other(format!("compile the system call filter: {cause}"))
        };
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = allowed::ALLOWED
            .iter()
            .map(|nr| (*nr, Vec::new()))
            .collect();
        rules.extend(conditions::rules().map_err(failed)?);
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Errno(libc::EPERM as u32),
            SeccompAction::Allow,
            TargetArch::x86_64,
        )
        .map_err(failed)?;
        Ok(Self {
            allowed: filter.try_into().map_err(failed)?,
            unknown: unknown(),
            for_commands: sealed(&for_commands())?,
        })
    }

    /// Puts the calling process under the filters, for good.
    pub fn apply(&self) -> io::Result<()> {
        let failed = |cause| io::Error::other(format!("apply the system call filter: {cause}"));
        apply_filter(&self.allowed).map_err(failed)?;
        apply_filter(&self.unknown).map_err(failed)
    }
}

const fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

const fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// Loads the number of the call, the first field of `seccomp_data`.
const LOAD_NUMBER: sock_filter = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0);
const ALLOW: sock_filter = statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);
const NOT_KNOWN: sock_filter = refusal(libc::ENOSYS);
/// Loads the first and the third argument, of which 32 bits count.
const LOAD_FAMILY: sock_filter = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 16);
const LOAD_PROTOCOL: sock_filter = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 32);

const fn refusal(error: i32) -> sock_filter {
    statement(
        libc::BPF_RET | libc::BPF_K,
        libc::SECCOMP_RET_ERRNO | error as u32,
    )
}

/// Refusals that programs expect and get over: calls that this release does
/// not know, and families of sockets that a kernel may lack. Where two filters
/// refuse, the last one's error counts. The x32 calls have numbers above all
/// others; i386 calls end the process in the first filter.
fn unknown() -> BpfProgram {
    const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const ABOVE: u32 = libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K;
    // Jumps count the statements that they leave out.
    vec![
        LOAD_NUMBER,
        jump(ABOVE, NEWEST, 9, 0),
        jump(IS, libc::SYS_socket as u32, 0, 9),
        LOAD_FAMILY,
        jump(IS, libc::AF_UNIX as u32, 7, 0),
        jump(IS, libc::AF_INET as u32, 6, 0),
        jump(IS, libc::AF_INET6 as u32, 5, 0),
        jump(IS, libc::AF_NETLINK as u32, 0, 2),
        LOAD_PROTOCOL,
        jump(IS, libc::NETLINK_ROUTE as u32, 2, 3),
        refusal(libc::EAFNOSUPPORT),
        NOT_KNOWN,
        ALLOW,
        jump(IS, libc::NETLINK_SOCK_DIAG as u32, 0, 1),
        ALLOW,
        refusal(libc::EPROTONOSUPPORT),
    ]
}

fn for_commands() -> BpfProgram {
    let clone3 = libc::SYS_clone3 as u32;
    vec![
        LOAD_NUMBER,
        jump(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, clone3, 0, 1),
        NOT_KNOWN,
        ALLOW,
    ]
}

/// The program as an array of the kernel's `struct sock_filter` in memory that
/// nobody can change.
fn sealed(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let memory = rustix::fs::memfd_create(
        "command-filter",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?;
    let mut file = std::fs::File::from(memory);
    for step in program {
        file.write_all(&step.code.to_ne_bytes())?;
        file.write_all(&[step.jt, step.jf])?;
        file.write_all(&step.k.to_ne_bytes())?;
    }
    let memory = OwnedFd::from(file);
    rustix::fs::fcntl_add_seals(
        &memory,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(memory)
}
