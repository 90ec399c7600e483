//! Who listens on a port, by the kernel's tables.

use std::collections::HashSet;
use std::fs;

/// How many descriptors are looked at in search of a socket.
const LOOKS_MAX: usize = 200_000;
/// The state of a socket that listens, in the kernel's tables.
const LISTEN: &str = "0A";

/// The sockets that listen on one port of this network namespace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listeners {
    inodes: HashSet<u64>,
    users: HashSet<u32>,
}

impl Listeners {
    /// Those on `port`; `None` without any.
    pub(super) fn on(port: u16) -> Option<Self> {
        let mut listeners = Self::default();
        for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
            // There is none where a family is off.
            listeners.read(&fs::read_to_string(table).unwrap_or_default(), port);
        }
        (!listeners.inodes.is_empty()).then_some(listeners)
    }

    /// Takes the lines of one table in.
    fn read(&mut self, table: &str, port: u16) {
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, local, _, LISTEN, _, _, _, user, _, inode, ..] = fields[..] else {
                continue;
            };
            let number = local.rsplit_once(':').map(|(_, port)| port);
            let number = number.and_then(|port| u16::from_str_radix(port, 16).ok());
            if let (true, Ok(inode), Ok(user)) = (number == Some(port), inode.parse(), user.parse())
            {
                self.inodes.insert(inode);
                self.users.insert(user);
            }
        }
    }

    /// Whether one of these processes has one of the sockets. Of a process whose descriptors
    /// may not be looked at, its user decides.
    pub(super) fn belong_to(&self, pids: &[i32]) -> bool {
        let mut looks = 0;
        for pid in pids {
            let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
                if user_of(*pid).is_some_and(|user| self.users.contains(&user)) {
                    return true;
                }
                continue;
            };
            for descriptor in descriptors.flatten() {
                looks += 1;
                if looks > LOOKS_MAX {
                    return false;
                }
                let target = fs::read_link(descriptor.path());
                let inode = target.ok().and_then(|target| {
                    let inside = target
                        .to_str()?
                        .strip_prefix("socket:[")?
                        .strip_suffix(']')?;
                    inside.parse().ok()
                });
                if inode.is_some_and(|inode: u64| self.inodes.contains(&inode)) {
                    return true;
                }
            }
        }
        false
    }
}

/// The effective user of a process.
fn user_of(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_listener_is_found_with_its_owner_and_a_connection_is_none() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = i32::try_from(std::process::id()).unwrap();
        let found = Listeners::on(port).unwrap();
        assert!(found.belong_to(&[own]));
        assert!(!found.belong_to(&[]));
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let from = client.local_addr().unwrap().port();
        assert_eq!(Listeners::on(from), None);
    }

    #[test]
    fn lines_that_are_none_are_skipped() {
        let mut listeners = Listeners::default();
        listeners.read("head\n\nodd\n 0: 0100007F:1F9B 0 0A\n", 8091);
        assert_eq!(listeners, Listeners::default());
        let line = " 0: 00000000000000000000000001000000:1F9B 0:0 0A 0:0 0:0 0 7 0 4242 1\n";
        listeners.read(&format!("head\n{line}"), 8091);
        assert!(listeners.inodes.contains(&4242) && listeners.users.contains(&7));
    }
}
