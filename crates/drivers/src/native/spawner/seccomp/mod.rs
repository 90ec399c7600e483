//! The filters on system calls, compiled before any fork.

mod allowed;
mod arguments;
mod numbers;

use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags};
use seccompiler::{BpfProgram, apply_filter, sock_filter};

/// The compiled filters. A call is made if all of them allow it.
pub struct Filters {
    arguments: BpfProgram,
    numbers: BpfProgram,
    /// What the daemon adds for commands, passed by descriptor.
    pub for_commands: OwnedFd,
}

impl Filters {
    /// Compiles the filters.
    pub fn compile() -> io::Result<Self> {
        let arguments = arguments::filter().map_err(|cause| {
            io::Error::other(format!("compile the system call filter: {cause}"))
        })?;
        Ok(Self {
            arguments,
            numbers: numbers::filter(),
            for_commands: sealed(&numbers::for_commands())?,
        })
    }

    /// Puts the calling process under the filters, for good.
    pub fn apply(&self) -> io::Result<()> {
        let failed = |cause| io::Error::other(format!("apply the system call filter: {cause}"));
        apply_filter(&self.arguments).map_err(failed)?;
        apply_filter(&self.numbers).map_err(failed)
    }
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
