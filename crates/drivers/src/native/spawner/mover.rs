//! Parting the daemon from its commands, off the critical path.
//!
//! PID 1 is born in the groups of commands, so that the starter that it forks
//! first thing is there without being moved. A helper then moves PID 1 out.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::fork::{self, Side};
use crate::native::cgroup::SlotGroups;

/// How long a daemon has to fork its starter.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the first command has before PID 1 is moved: a move holds up every
/// fork on the machine for some milliseconds.
const SETTLE: Duration = Duration::from_millis(120);
/// What makes the kernel choose a starter and its commands before anything of
/// the host. The starter gives its commands more, so that they go before it.
const OOM_SCORE: i32 = 200;

/// Starts the helper; it is a child that ends by itself.
pub fn start(groups: &SlotGroups, pid: i32) -> io::Result<()> {
    match fork::fork(0, None)? {
        Side::Parent { .. } => Ok(()),
        Side::Child => {
            fork::close_all_but(&[]);
            part(groups, pid);
            fork::leave(0)
        }
    }
}

fn part(groups: &SlotGroups, pid: i32) {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = SETTLE;
    loop {
        std::thread::sleep(pause);
        let Ok(commands) = groups.commands() else {
            return;
        };
        if !commands.contains(&pid) {
            return;
        }
        let others: Vec<i32> = commands.into_iter().filter(|other| *other != pid).collect();
        if !others.is_empty() || Instant::now() > deadline {
            for other in others {
                raise_oom_score(other);
            }
            for place in groups.daemon_places() {
                let _ = fs::write(place, pid.to_string());
            }
            return;
        }
        pause = Duration::from_millis(50);
    }
}

/// Written with the host's rights, the score is also the least that the process
/// and its children can go back to. A command that has more already keeps it.
fn raise_oom_score(pid: i32) {
    let file = format!("/proc/{pid}/oom_score_adj");
    let now = fs::read_to_string(&file).ok();
    let now: i32 = now.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let _ = fs::write(file, now.max(OOM_SCORE).to_string());
}
