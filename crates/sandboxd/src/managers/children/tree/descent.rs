//! A tree found by descent, for places without control groups.
//!
//! The command is a child subreaper there, so its orphans stay below it while it
//! lives; members are remembered by process id and start time, so they are
//! still known when it has ended before them. To miss nobody who forks
//! meanwhile, a tree is stopped before it is signalled.

use super::group::send;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Mutex, PoisonError};

/// How often a tree is listed again to find what was forked meanwhile.
const ROUNDS: usize = 64;

#[derive(Debug)]
pub(super) struct Descent {
    leader: i32,
    /// When the leader started; `None` if it had ended before that could be read.
    started: Option<u64>,
    /// Process id and start time of everyone seen.
    known: Mutex<HashSet<(i32, u64)>>,
}

impl Descent {
    pub(super) fn new(leader: i32) -> Self {
        let started = start_time(leader);
        let known = started.map(|started| (leader, started));
        Self {
            leader,
            started,
            known: Mutex::new(known.into_iter().collect()),
        }
    }

    /// The living members. Zombies do not count.
    pub(super) fn members(&self) -> io::Result<Vec<i32>> {
        let all = processes()?;
        // Once another process has the leader's number, a session of that number is its.
        let session_is_ours = all
            .get(&self.leader)
            .is_none_or(|now| self.started == Some(now.started));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let before = known.len();
            for (pid, process) in &all {
                let parent = all
                    .get(&process.parent)
                    .map(|parent| (process.parent, parent.started));
                let descends = parent.is_some_and(|parent| known.contains(&parent));
                if descends || (session_is_ours && process.session == self.leader) {
                    known.insert((*pid, process.started));
                }
            }
            if known.len() == before {
                break;
            }
        }
        known.retain(|(pid, started)| all.get(pid).is_some_and(|now| now.started == *started));
        Ok(known
            .iter()
            .map(|(pid, _)| *pid)
            .filter(|pid| all.get(pid).is_some_and(|p| p.alive))
            .collect())
    }

    pub(super) fn signal(&self, signal: i32) -> io::Result<()> {
        let members = self.stop_all()?;
        for pid in &members {
            send(*pid, signal);
        }
        for pid in &members {
            send(*pid, libc::SIGCONT);
        }
        Ok(())
    }

    pub(super) fn kill(&self) -> io::Result<()> {
        for pid in self.stop_all()? {
            send(pid, libc::SIGKILL);
        }
        Ok(())
    }

    /// Stops every member, until two listings in turn find nobody new: who
    /// gets another parent while one is made may be missing from it.
    fn stop_all(&self) -> io::Result<HashSet<i32>> {
        let mut stopped = HashSet::new();
        let mut quiet = 0;
        for _ in 0..ROUNDS {
            quiet += 1;
            for pid in self.members()? {
                if stopped.insert(pid) {
                    send(pid, libc::SIGSTOP);
                    quiet = 0;
                }
            }
            if quiet == 2 {
                break;
            }
        }
        Ok(stopped)
    }
}

struct Process {
    parent: i32,
    session: i32,
    started: u64,
    alive: bool,
}

fn processes() -> io::Result<HashMap<i32, Process>> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(process) = process(pid) {
            all.insert(pid, process);
        }
    }
    Ok(all)
}

fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&stat)
}

/// Reads a line of `/proc/PID/stat`, whose second field may hold anything.
fn parse(stat: &[u8]) -> Option<Process> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Process {
        alive: !matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

fn start_time(pid: i32) -> Option<u64> {
    process(pid).map(|process| process.started)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_confuse_the_parser() {
        let line = b"42 (a) Z 1 (b) S 7 42 41 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987 1 1";
        let process = parse(line).unwrap();
        assert_eq!(
            (process.parent, process.session, process.started),
            (7, 41, 987)
        );
        assert!(process.alive);
    }
}
