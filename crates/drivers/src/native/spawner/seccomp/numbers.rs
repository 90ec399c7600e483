//! The filter on the numbers of calls, as a few dozen ranges.
//!
//! A comparison for each call would be some 1,600 steps, and the kernel
//! evaluates a filter for every call number when it is installed: that took
//! two milliseconds of every start.

use seccompiler::{BpfProgram, sock_filter};

use super::allowed::ALLOWED;

/// The newest call that the list was written with. Later ones answer ENOSYS,
/// so that programs fall back as on an older kernel.
const NEWEST: u32 = libc::SYS_mseal as u32;
/// `AUDIT_ARCH_X86_64`.
const X86_64: u32 = 0xc000_003e;

/// Offsets in the kernel's `seccomp_data`; of arguments 32 bits are read.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENT_0: u32 = 16;
const ARGUMENT_1: u32 = 24;
const ARGUMENT_2: u32 = 32;
const ARGUMENT_2_HIGH: u32 = 36;

const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const ABOVE: u32 = libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K;
const AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;

const ALLOW: sock_filter = statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);
/// Answers success without doing anything.
const PRETEND: sock_filter = statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO);
const END: sock_filter = statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS);

/// What may be called at all. i386 calls end the process; x32 calls have
/// numbers above all others and do not exist.
pub fn filter() -> BpfProgram {
    // Jumps count the statements that they leave out.
    let mut program = vec![
        load(ARCHITECTURE),
        jump(IS, X86_64, 1, 0),
        END,
        load(NUMBER),
        jump(ABOVE, NEWEST, 0, 1),
        refuse(libc::ENOSYS),
    ];
    program.extend(sockets());
    program.extend(core_limits());
    for (first, last) in ranges(ALLOWED.iter().filter_map(|nr| u32::try_from(*nr).ok())) {
        program.extend([
            jump(ABOVE, last, 3, 0),
            jump(AT_LEAST, first, 0, 1),
            ALLOW,
            refuse(libc::EPERM),
        ]);
    }
    program.push(refuse(libc::EPERM));
    program
}

/// What the daemon adds for commands: `clone3` does not exist, since a filter
/// cannot see its flags and programs then use `clone`.
pub fn for_commands() -> BpfProgram {
    vec![
        load(NUMBER),
        jump(IS, libc::SYS_clone3 as u32, 0, 1),
        refuse(libc::ENOSYS),
        ALLOW,
    ]
}

/// Local and internet sockets, and of netlink what lists addresses and
/// sockets: no AF_ALG, AF_VSOCK, AF_PACKET, AF_XDP or anything more exotic.
/// The errors are those of a kernel without them, which programs get over.
fn sockets() -> [sock_filter; 12] {
    [
        jump(IS, libc::SYS_socket as u32, 0, 11),
        load(ARGUMENT_0),
        jump(IS, libc::AF_UNIX as u32, 7, 0),
        jump(IS, libc::AF_INET as u32, 6, 0),
        jump(IS, libc::AF_INET6 as u32, 5, 0),
        jump(IS, libc::AF_NETLINK as u32, 1, 0),
        refuse(libc::EAFNOSUPPORT),
        load(ARGUMENT_2),
        jump(IS, libc::NETLINK_ROUTE as u32, 1, 0),
        jump(IS, libc::NETLINK_SOCK_DIAG as u32, 0, 1),
        ALLOW,
        refuse(libc::EPROTONOSUPPORT),
    ]
}

/// Changes of the core limit do nothing and say that they worked. Programs that
/// hold secrets set it to zero and end if they cannot; but at zero the kernel
/// hands a core to the host's core program, which it does not at one.
fn core_limits() -> [sock_filter; 14] {
    [
        jump(IS, libc::SYS_setrlimit as u32, 0, 4),
        load(ARGUMENT_0),
        jump(IS, libc::RLIMIT_CORE, 0, 1),
        PRETEND,
        ALLOW,
        jump(IS, libc::SYS_prlimit64 as u32, 0, 8),
        load(ARGUMENT_1),
        jump(IS, libc::RLIMIT_CORE, 0, 5),
        // Without a new limit it only asks.
        load(ARGUMENT_2),
        jump(IS, 0, 0, 2),
        load(ARGUMENT_2_HIGH),
        jump(IS, 0, 1, 0),
        PRETEND,
        ALLOW,
    ]
}

/// Numbers as ranges, both ends included, in ascending order.
fn ranges(numbers: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if number <= *last + 1 => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

const fn load(offset: u32) -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

const fn refuse(error: i32) -> sock_filter {
    statement(
        libc::BPF_RET | libc::BPF_K,
        libc::SECCOMP_RET_ERRNO | error as u32,
    )
}

const fn statement(code: u32, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

const fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    /// What the kernel would do, for the statements that are used here.
    fn evaluate(program: &[sock_filter], number: u32, arguments: [u64; 3]) -> u32 {
        let mut at = 0;
        let mut value = 0;
        loop {
            let step = &program[at];
            at += 1;
            let code = u32::from(step.code);
            let taken = match code {
                IS => value == step.k,
                ABOVE => value > step.k,
                AT_LEAST => value >= step.k,
                _ if code == libc::BPF_RET | libc::BPF_K => return step.k,
                _ => {
                    value = match step.k {
                        NUMBER => number,
                        ARCHITECTURE => X86_64,
                        ARGUMENT_0 => arguments[0] as u32,
                        ARGUMENT_1 => arguments[1] as u32,
                        ARGUMENT_2 => arguments[2] as u32,
                        ARGUMENT_2_HIGH => (arguments[2] >> 32) as u32,
                        other => panic!("loads {other}"),
                    };
                    continue;
                }
            };
            at += usize::from(if taken { step.jt } else { step.jf });
        }
    }

    const fn error(error: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | error as u32
    }

    #[test]
    fn exactly_the_list_is_allowed() {
        let program = filter();
        assert!(program.len() < 400, "{}", program.len());
        for number in 0..=NEWEST {
            let expected = if ALLOWED.contains(&i64::from(number)) {
                libc::SECCOMP_RET_ALLOW
            } else {
                error(libc::EPERM)
            };
            if i64::from(number) != libc::SYS_socket {
                assert_eq!(evaluate(&program, number, [0; 3]), expected, "{number}");
            }
        }
        for number in [NEWEST + 1, 0x4000_0000 | 39, u32::MAX] {
            assert_eq!(evaluate(&program, number, [0; 3]), error(libc::ENOSYS));
        }
    }

    #[test]
    fn sockets_are_told_apart() {
        let program = filter();
        let socket = |family: i32, protocol: i32| {
            let arguments = [family, 0, protocol].map(|value| u64::from(value.cast_unsigned()));
            evaluate(&program, libc::SYS_socket as u32, arguments)
        };
        for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
            assert_eq!(socket(family, 6), libc::SECCOMP_RET_ALLOW, "{family}");
        }
        for protocol in [libc::NETLINK_ROUTE, libc::NETLINK_SOCK_DIAG] {
            assert_eq!(socket(libc::AF_NETLINK, protocol), libc::SECCOMP_RET_ALLOW);
        }
        assert_eq!(
            socket(libc::AF_NETLINK, libc::NETLINK_AUDIT),
            error(libc::EPROTONOSUPPORT)
        );
        for family in [libc::AF_ALG, libc::AF_VSOCK, libc::AF_PACKET, 0, 44] {
            assert_eq!(socket(family, 0), error(libc::EAFNOSUPPORT), "{family}");
        }
    }

    #[test]
    fn the_core_limit_can_be_asked_for_but_not_changed() {
        let program = filter();
        let core = u64::from(libc::RLIMIT_CORE);
        let files = u64::from(libc::RLIMIT_NOFILE);
        let prlimit =
            |resource, new| evaluate(&program, libc::SYS_prlimit64 as u32, [0, resource, new]);
        let setrlimit = |resource| evaluate(&program, libc::SYS_setrlimit as u32, [resource, 1, 0]);
        assert_eq!(prlimit(core, 0), libc::SECCOMP_RET_ALLOW);
        assert_eq!(prlimit(core, 0x7fff), error(0));
        assert_eq!(prlimit(core, 1 << 32), error(0));
        assert_eq!(prlimit(files, 0x7fff), libc::SECCOMP_RET_ALLOW);
        assert_eq!(setrlimit(core), error(0));
        assert_eq!(setrlimit(files), libc::SECCOMP_RET_ALLOW);
    }
}
