//! The system calls that a sandbox may make with some arguments only.

use std::collections::BTreeMap;

use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{BackendError, SeccompCondition, SeccompRule};

/// All flags that make a namespace.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64
    & 0xffff_ffff;
/// `CLONE_NEWTIME` shares its bit with the exit signal of `clone`.
const NAMESPACES_AND_TIME: u64 = NAMESPACES | 0x80;

/// Each system call with the argument lists that are allowed.
pub fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules = BTreeMap::new();
    rules.insert(libc::SYS_clone, vec![without(0, NAMESPACES)?]);
    rules.insert(libc::SYS_unshare, vec![without(0, NAMESPACES_AND_TIME)?]);
    rules.insert(libc::SYS_personality, personality()?);
    rules.insert(libc::SYS_socket, socket()?);
    rules.insert(libc::SYS_ioctl, ioctl()?);
    Ok(rules)
}

fn without(argument: u8, bits: u64) -> Result<SeccompRule, BackendError> {
    rule(vec![SeccompCondition::new(
        argument,
        Qword,
        MaskedEq(bits),
        0,
    )?])
}

/// The domains `PER_LINUX` and `PER_LINUX32`, with and without
/// `UNAME26`, and the query.
fn personality() -> Result<Vec<SeccompRule>, BackendError> {
    [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff]
        .into_iter()
        .map(|value| rule(vec![SeccompCondition::new(0, Dword, Eq, value)?]))
        .collect()
}

/// Local and internet sockets, and of netlink what lists addresses and sockets.
/// So no AF_ALG, AF_VSOCK, AF_PACKET, AF_XDP or anything more exotic.
fn socket() -> Result<Vec<SeccompRule>, BackendError> {
    let family = |family: i32| SeccompCondition::new(0, Dword, Eq, family as u64);
    let mut rules = Vec::new();
    for allowed in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
        rules.push(rule(vec![family(allowed)?])?);
    }
    for protocol in [libc::NETLINK_ROUTE, libc::NETLINK_SOCK_DIAG] {
        rules.push(rule(vec![
            family(libc::AF_NETLINK)?,
            SeccompCondition::new(2, Dword, Eq, protocol as u64)?,
        ])?);
    }
    Ok(rules)
}

/// Everything but typing into a terminal for another process and, of btrfs's
/// calls (type 0x94), what is not cloning of file content.
fn ioctl() -> Result<Vec<SeccompRule>, BackendError> {
    const KIND: u64 = 0xff00;
    const BTRFS: u64 = 0x9400;
    const FICLONE: u64 = 0x4004_9409;
    const FICLONERANGE: u64 = 0x4020_940d;
    const FIDEDUPERANGE: u64 = 0xc018_9436;
    const TIOCLINUX: u64 = 0x541c;
    let request = |op, value| SeccompCondition::new(1, Dword, op, value);
    let mut rules = Vec::new();
    // A type is another one if any bit of it differs.
    for bit in (8..16).map(|bit| 1_u64 << bit) {
        rules.push(rule(vec![
            request(MaskedEq(bit), !BTRFS & bit & KIND)?,
            request(Ne, libc::TIOCSTI)?,
            request(Ne, TIOCLINUX)?,
        ])?);
    }
    for allowed in [FICLONE, FICLONERANGE, FIDEDUPERANGE] {
        rules.push(rule(vec![request(Eq, allowed)?])?);
    }
    Ok(rules)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}
