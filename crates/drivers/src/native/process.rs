//! What identifies a process beyond its number.

use std::fs;
use std::io;

/// A process's start time in clock ticks after the machine's boot.
pub fn start_time(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything, parentheses too.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after
        .split_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat is not readable")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn own_start_time_is_read_and_stays() {
        let pid = std::process::id();
        let first = start_time(pid).unwrap();
        assert!(first > 0);
        assert_eq!(first, start_time(pid).unwrap());
    }
}
