//! How a process ended.

/// A wait status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

impl Exit {
    /// The exit code as shells report it: 128 + the signal's number for a death by signal.
    #[must_use]
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// The number of the signal that ended it.
    #[must_use]
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Code(_) => None,
            Self::Signal(number) => Some(number),
        }
    }

    /// The signal's name, such as `SIGKILL`, for a death by signal.
    #[must_use]
    pub fn signal_name(self) -> Option<String> {
        match self {
            Self::Code(_) => None,
            Self::Signal(number) => Some(signal_name(number)),
        }
    }
}

const NAMES: [&str; 32] = [
    "", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

fn signal_name(number: i32) -> String {
    match usize::try_from(number)
        .ok()
        .and_then(|index| NAMES.get(index))
    {
        Some(name) if !name.is_empty() => format!("SIG{name}"),
        _ => format!("SIG{number}"),
    }
}

/// The number of a signal given by name (`SIGTERM`, `TERM`, `term`).
#[must_use]
pub fn signal_number(name: &str) -> Option<i32> {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    let index = NAMES.iter().skip(1).position(|known| *known == short)?;
    i32::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(
            Exit::Signal(libc::SIGKILL).signal_name().as_deref(),
            Some("SIGKILL")
        );
        assert_eq!(
            Exit::Signal(libc::SIGSYS).signal_name().as_deref(),
            Some("SIGSYS")
        );
        assert_eq!(Exit::Signal(libc::SIGTERM).shell_code(), 143);
        assert_eq!(signal_number("sigterm"), Some(libc::SIGTERM));
        assert_eq!(signal_number("USR2"), Some(libc::SIGUSR2));
        assert_eq!(signal_number("SIG"), None);
        assert_eq!(signal_number("NOPE"), None);
    }
}
