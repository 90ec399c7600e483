//! Arguments that a sandbox may not give to calls that it may make.

use std::collections::BTreeMap;

use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// All flags that make a namespace.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// `CLONE_NEWTIME` shares its bit with the exit signal of `clone`.
const NEW_TIME: u64 = 0x80;

/// The filter: EPERM for the refused arguments.
pub fn filter() -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(
        refused()?,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
        TargetArch::x86_64,
    )?
    .try_into()
}

/// Each call with the argument lists that are refused.
fn refused() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut unshare = namespaces()?;
    unshare.push(has_bit(NEW_TIME)?);
    Ok(BTreeMap::from([
        (libc::SYS_clone, namespaces()?),
        (libc::SYS_unshare, unshare),
        (libc::SYS_personality, personality()?),
        (libc::SYS_ioctl, ioctl()?),
    ]))
}

fn namespaces() -> Result<Vec<SeccompRule>, BackendError> {
    let bit = |flag: &i32| has_bit(u64::from(flag.cast_unsigned()));
    NAMESPACES.iter().map(bit).collect()
}

fn has_bit(bit: u64) -> Result<SeccompRule, BackendError> {
    let condition = SeccompCondition::new(0, Qword, MaskedEq(bit), bit)?;
    SeccompRule::new(vec![condition])
}

/// Anything but `PER_LINUX` and `PER_LINUX32`, with and without `UNAME26`, and
/// the query.
fn personality() -> Result<Vec<SeccompRule>, BackendError> {
    let other = |value| SeccompCondition::new(0, Dword, Ne, value);
    let conditions = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff].map(other);
    let conditions = conditions.into_iter().collect::<Result<_, _>>()?;
    Ok(vec![SeccompRule::new(conditions)?])
}

/// Typing into a terminal for another process and, of btrfs's calls (type
/// 0x94), what is not cloning of file content.
fn ioctl() -> Result<Vec<SeccompRule>, BackendError> {
    const KIND: u64 = 0xff00;
    const BTRFS: u64 = 0x9400;
    const FICLONE: u64 = 0x4004_9409;
    const FICLONERANGE: u64 = 0x4020_940d;
    const FIDEDUPERANGE: u64 = 0xc018_9436;
    const TIOCLINUX: u64 = 0x541c;
    let request = |op, value| SeccompCondition::new(1, Dword, op, value);
    Ok(vec![
        SeccompRule::new(vec![request(Eq, libc::TIOCSTI)?])?,
        SeccompRule::new(vec![request(Eq, TIOCLINUX)?])?,
        SeccompRule::new(vec![
            request(MaskedEq(KIND), BTRFS)?,
            request(Ne, FICLONE)?,
            request(Ne, FICLONERANGE)?,
            request(Ne, FIDEDUPERANGE)?,
        ])?,
    ])
}
